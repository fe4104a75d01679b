package report

import (
	"cmp"
	"path"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A spreadRow is the spread of one figure over the repeats of a level.
type spreadRow struct {
	run  *outcome.Run
	of   *outcome.Repeats
	what *metric.Spread
}

// spreads iterates over all spreads of a report.
func (r *Report) spreads(yield func(spreadRow, error) bool) {
	for i := range r.Runs {
		for _, repeats := range r.Runs[i].Repeats() {
			for k := range repeats.Spreads {
				if !yield(spreadRow{&r.Runs[i], &repeats, &repeats.Spreads[k]}, nil) {
					return
				}
			}
		}
	}
}

// repeatTable returns one row per figure of each repeated level.
func (r *Report) repeatTable() table {
	of := func(name string, value func(s *metric.Spread) *float64) source[spreadRow] {
		return number(name, func(s spreadRow) *float64 { return value(s.what) })
	}
	return tableOf([]source[spreadRow]{
		textColumn("run", func(s spreadRow) string { return s.run.Name }),
		textColumn("level", func(s spreadRow) string { return coordinateWords(s.of.Coordinates) }),
		textColumn("figure", func(s spreadRow) string { return s.what.Figure }),
		textColumn("unit", func(s spreadRow) string { return s.what.Unit }),
		count("runs", func(s spreadRow) int { return s.what.Runs }),
		of("mean", func(s *metric.Spread) *float64 { return &s.Mean }),
		of("mean_low", func(s *metric.Spread) *float64 { return s.Interval.Low }),
		of("mean_high", func(s *metric.Spread) *float64 { return s.Interval.High }),
		of("std", func(s *metric.Spread) *float64 { return &s.Std }),
		of("min", func(s *metric.Spread) *float64 { return &s.Min }),
		of("max", func(s *metric.Spread) *float64 { return &s.Max }),
		of("within", func(s *metric.Spread) *float64 { return s.Within }),
		textColumn("larger", func(s spreadRow) string { return string(s.what.Larger) }),
		textColumn("verdict", func(s spreadRow) string { return predictedWord(s.run.Predicted()) }),
	}, r.spreads)
}

func coordinateWords(cs outcome.Coordinates) string {
	var all []string
	for _, c := range cs {
		all = append(all, c.Name+" "+c.Value)
	}
	return strings.Join(all, ", ")
}

// repeats writes how far repeats of a level differ, and how to read the difference.
func (p *printer) repeats(runs []outcome.Run) {
	for i := range runs {
		for _, r := range runs[i].Repeats() {
			p.line("")
			p.line(between(runs, i, &r))
			p.table(spreadLines(r.Spreads))
			p.line(sentence(r.Words()))
		}
	}
}

// between titles the table of repeats of a level. If there are several runs, the title
// names the run.
func between(runs []outcome.Run, i int, r *outcome.Repeats) string {
	at := []string{"Between repeats"}
	if len(runs) > 1 {
		at = append(at, path.Base(runs[i].Name))
	}
	if where := coordinateWords(r.Coordinates); where != "" {
		at = append(at, where)
	}
	return safe(strings.Join(at, ", ") + ":")
}

func sentence(words string) string { return strings.ToUpper(words[:1]) + words[1:] + "." }

// spreadLines formats spreads as a table. Deviations are in percent of the mean.
func spreadLines(spreads []metric.Spread) [][]string {
	lines := [][]string{{"figure", "mean", "95 % interval of the mean", "min", "max", "between runs %", "within a run %", "larger"}}
	for i := range spreads {
		s := &spreads[i]
		of := func(deviation *float64) string {
			if deviation == nil || s.Mean == 0 {
				return notMeasured
			}
			part := *deviation / s.Mean
			return share(&part)
		}
		lines = append(lines, []string{
			s.Figure + " (" + s.Unit + ")", fixed(&s.Mean), fixed(s.Interval.Low) + " to " + fixed(s.Interval.High), fixed(&s.Min), fixed(&s.Max),
			of(&s.Std), of(s.Within), cmp.Or(string(s.Larger), notMeasured),
		})
	}
	return lines
}
