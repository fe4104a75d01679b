package report

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"tacho/internal/cells"
	"tacho/metric"
	"tacho/outcome"
	"tacho/report/conclusion"
)

// Curve is the name of the format of the same name.
const Curve = "curve"

var curveFormat = Format{
	Name: Curve, Doc: "a screen of it: the table of levels, curves with the knee, and what they come to in words",
	Render: func(w io.Writer, r *Report) error {
		out := bufio.NewWriter(w) // keeps the first error for Flush
		p := printer{out}
		if len(r.Runs) == 1 {
			p.whom(&r.Runs[0])
		}
		if err := p.narrow(r.Runs, r.Wide); err != nil {
			return err
		}
		for i := range r.Runs {
			p.line("")
			if len(r.Runs) > 1 {
				p.line("## " + safe(r.Runs[i].Name))
				p.whom(&r.Runs[i])
			}
			p.glance(&r.Runs[i], r)
		}
		return out.Flush()
	},
}

// Where there is no terminal, curves are so wide.
const usualWidth = 100

// whom writes in a line what was measured.
func (p printer) whom(run *outcome.Run) {
	if about := nonEmpty(run.Model, strings.Join(run.URLs, ", "), run.Dataset); len(about) > 0 {
		p.line(safe(strings.Join(about, ", ")))
		p.line("")
	}
}

// glance writes the curves of a run, and what they come to.
func (p printer) glance(run *outcome.Run, r *Report) {
	if lines := curves(run.Levels, r); len(lines) > 0 {
		for _, line := range lines {
			p.line(line)
		}
		p.line("")
	}
	for _, text := range slices.Concat(Closing(run), reasonsAgainst(run.Levels)) {
		for _, line := range cells.Wrap(safe(text), r.Wide) {
			p.line(line)
		}
	}
	p.notes(slices.DeleteFunc(slices.Clone(run.Notes), outcome.IsLimit)) // which is said
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// spare are the columns of the table that go first where it is too wide.
var spare = []string{"total tok/s", "mean ITL", "mean TTFT", "ok", "failed", "mean TPOT"}

// narrow writes the table of levels, with as many columns as fit.
func (p printer) narrow(runs []outcome.Run, wide int) error {
	table := glance(runs)
	lines, err := table.strings(false)
	if err != nil {
		return err
	}
	for _, name := range spare {
		if wide == 0 || tableWidth(lines) <= wide {
			break
		}
		if i := slices.Index(lines[0], name); i >= 0 {
			for k := range lines {
				lines[k] = slices.Delete(slices.Clone(lines[k]), i, i+1)
			}
		}
	}
	p.levelTable(lines)
	p.repeats(runs)
	return nil
}

func tableWidth(lines [][]string) int {
	sum := -2
	for i := range lines[0] {
		most := 0
		for _, l := range lines {
			most = max(most, cells.Width(l[i]))
		}
		sum += most + 2
	}
	return sum
}

// curves are throughput and latency against load, side by side; nothing where the
// levels are no curve.
func curves(levels []outcome.Level, r *Report) []string {
	places, _, load := outcome.Ladder(levels)
	if len(places) < 3 {
		return nil
	}
	held, name := conclusion.Mark(levels)
	n := 1 + slices.Index(places, held)
	if n == len(places) {
		n = 0 // there is nothing beyond it
	}
	plot := func(title string, of func(*outcome.Level) *float64, show func(float64) string) *cells.Plot {
		c := &cells.Plot{Title: title + " by load", X: load, Name: name, Show: show, ShowX: conclusion.Brief}
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
	served := plot("Output tok/s", func(l *outcome.Level) *float64 { return &l.Summary.Throughput.OutputTokensPerS }, conclusion.Brief)
	if served == nil || slices.Max(served.Y) == 0 {
		served = plot("Served req/s", func(l *outcome.Level) *float64 { return &l.Summary.Throughput.RequestsPerS }, conclusion.Brief)
	}
	late := plot("TTFT p99", tail(metric.TTFT), conclusion.Millis)
	if late == nil {
		late = plot("E2EL p99", tail(metric.E2EL), conclusion.Millis)
	}
	return r.Plots(served, late)
}

// Plots are two curves side by side, or the first alone where there is no other.
func (r *Report) Plots(left, right *cells.Plot) []string {
	wide := r.Wide
	if wide == 0 {
		wide = usualWidth
	}
	const high, gap = 11, 3
	half := min((wide-gap)/2, 70)
	pen := cells.Pen{ASCII: r.ASCII}
	lines := pen.Plot(left, half, high)
	if right == nil || lines == nil {
		return lines
	}
	return cells.Beside(lines, pen.Plot(right, half, high), half+gap)
}

func tail(m *metric.Metric) func(*outcome.Level) *float64 {
	return func(l *outcome.Level) *float64 {
		if stats := l.Summary.Dist(m).Stats; stats != nil {
			return new(stats.Percentile(99))
		}
		return nil
	}
}
