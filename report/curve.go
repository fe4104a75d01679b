package report

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// Curve is the name of the curve format.
const Curve = "curve"

var curveFormat = Format{
	Name: Curve, Doc: "one screen: the table of levels, curves with the knee, and the conclusion",
	Render: func(w io.Writer, r *Report) error {
		out := bufio.NewWriter(w) // keeps the first error for Flush
		p := &printer{out: out, wrap: r.Wrap}
		if len(r.Runs) == 1 {
			p.target(&r.Runs[0])
		}
		if err := p.fittingTable(r.Runs, r.Wide); err != nil {
			return err
		}
		for i := range r.Runs {
			p.line("")
			if len(r.Runs) > 1 {
				p.line("## " + safe(r.Runs[i].Name))
				p.target(&r.Runs[i])
			}
			p.curveScreen(&r.Runs[i], r)
		}
		return out.Flush()
	},
}

// target writes one line with the model, the server and the dataset.
func (p *printer) target(run *outcome.Run) {
	if about := nonEmpty(run.Model, strings.Join(run.URLs, ", "), run.Dataset); len(about) > 0 {
		p.line(safe(strings.Join(about, ", ")))
		p.line("")
	}
}

// curveScreen writes the curves of a run and its conclusion.
func (p *printer) curveScreen(run *outcome.Run, r *Report) {
	if lines := curves(run.Levels, r); len(lines) > 0 {
		for _, line := range lines {
			p.line(line)
		}
		p.line("")
	}
	for _, text := range slices.Concat(Closing(run), Doubts("", run.Levels)) {
		p.wrapped("", safe(text), "")
	}
	p.notes(slices.DeleteFunc(slices.Clone(run.Notes), outcome.IsLimit)) // the conclusion contains it
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// droppable are the columns to drop, in this order, if the table is too wide. At the
// word narrower the columns move together.
var droppable = []string{"total tok/s", "ok", "mean TPOT ms", "mean TTFT ms", "failed", "p99 E2EL ms", narrower, "p99 TPOT ms", "good req/s"}

const narrower = "one space between columns"

// fittingTable writes the table of levels with as many columns as fit.
func (p *printer) fittingTable(runs []outcome.Run, wide int) error {
	table := summaryTable(runs)
	lines, err := table.strings(false)
	if err != nil {
		return err
	}
	p.gap = margin
	for _, name := range droppable {
		if wide == 0 || tableWidth(lines, p.gap) <= wide {
			break
		}
		if name == narrower {
			p.gap = " "
			continue
		}
		if i := slices.Index(lines[0], name); i >= 0 {
			for k := range lines {
				lines[k] = slices.Delete(slices.Clone(lines[k]), i, i+1)
			}
		}
	}
	p.levelTable(&table, lines)
	p.gap = ""
	p.repeats(runs)
	return nil
}

func tableWidth(lines [][]string, gap string) int {
	sum := -len(gap)
	for i := range lines[0] {
		most := 0
		for _, l := range lines {
			most = max(most, termtext.Width(l[i]))
		}
		sum += most + len(gap)
	}
	return sum
}

// curves plots throughput and latency against load, side by side. It returns nil if the
// levels do not form a curve.
func curves(levels []outcome.Level, r *Report) []string {
	places, _, load := outcome.Ladder(levels)
	if len(places) < 3 {
		return nil
	}
	held, name := conclusion.Mark(levels)
	n := 1 + slices.Index(places, held)
	var off []bool // INVALID levels
	for _, i := range places {
		off = append(off, levels[i].Summary.Verdict.Severity == metric.Invalid)
	}
	if !slices.Contains(off[n:], false) {
		n = 0 // no usable level lies above the mark
	}
	about := " by load"
	if slices.Contains(off, true) {
		about += " (crosses: INVALID)"
	}
	plot := func(title string, of func(*outcome.Level) *float64, show func(float64) string) *termtext.Plot {
		c := &termtext.Plot{Title: title + about, X: load, Off: off, Name: name, Show: show, ShowX: metric.Brief}
		if n > 0 {
			c.Mark = &load[n-1]
		}
		for _, i := range places {
			v := of(&levels[i])
			if v == nil {
				return nil
			}
			c.Y = append(c.Y, *v)
		}
		return c
	}
	served := plot("Output tok/s", func(l *outcome.Level) *float64 { return &l.Summary.Throughput.OutputTokensPerS }, metric.Brief)
	if served == nil || slices.Max(served.Y) == 0 {
		served = plot("Served req/s", func(l *outcome.Level) *float64 { return &l.Summary.Throughput.RequestsPerS }, metric.Brief)
	}
	late := plot("TTFT p99", tail(metric.TTFT), metric.Duration)
	if late == nil {
		late = plot("E2EL p99", tail(metric.E2EL), metric.Duration)
	}
	return r.Plots(served, late)
}

// Plots draws two curves side by side, or only the first if right is nil.
func (r *Report) Plots(left, right *termtext.Plot) []string {
	wide := r.Wide
	if wide == 0 {
		wide = 100 // the output is not a terminal
	}
	const high, gap = 11, 3
	half := min((wide-gap)/2, 70)
	pen := termtext.Pen{ASCII: r.ASCII}
	lines := pen.Plot(left, half, high)
	if right == nil || lines == nil {
		return lines
	}
	return termtext.Beside(lines, pen.Plot(right, half, high), half+gap)
}

func tail(m *metric.Metric) func(*outcome.Level) *float64 {
	return func(l *outcome.Level) *float64 {
		if stats := l.Summary.Dist(m).Stats; stats != nil {
			return new(stats.Percentile(99))
		}
		return nil
	}
}
