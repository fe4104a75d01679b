package report

import (
	"bufio"
	"io"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// Pareto is the name of the pareto format.
const Pareto = "pareto"

var paretoFormat = Format{
	Name: Pareto, Doc: "throughput against tokens/s per user for each level; * marks the Pareto front",
	Render: func(w io.Writer, r *Report) error {
		out := bufio.NewWriter(w) // keeps the first error for Flush
		table := paretoTable(r.Runs)
		lines, err := table.strings(false)
		if err != nil {
			return err
		}
		(&printer{out: out}).table(lines)
		return out.Flush()
	},
}

// rates returns the output token rate of a level, in total and per user. ok is false if
// nothing was measured.
func rates(l *outcome.Level) (all, each float64, ok bool) {
	tpot := l.Summary.Dist(metric.TPOT).Stats
	if t := l.Summary.Throughput; t != nil && tpot != nil && tpot.Mean > 0 {
		return t.OutputTokensPerS / max(l.Summary.Config.GPUs, 1), 1e3 / tpot.Mean, true
	}
	return 0, 0, false
}

// onParetoFront reports whether no other level is better in both rates. INVALID levels do not count.
func onParetoFront(l *outcome.Level, runs []outcome.Run) bool {
	all, each, ok := rates(l)
	invalid := func(l *outcome.Level) bool { return l.Summary.Verdict.Severity == metric.Invalid }
	return ok && !invalid(l) && !slices.ContainsFunc(runs, func(r outcome.Run) bool {
		return slices.ContainsFunc(r.Levels, func(o outcome.Level) bool {
			a, e, ok := rates(&o)
			return ok && !invalid(&o) && a >= all && e >= each && (a > all || e > each)
		})
	})
}

// paretoTable returns one line per level.
func paretoTable(runs []outcome.Run) table {
	sources := coordinateColumns(runs)
	perGPU := "out tok/s"
	if len(runs) > 0 && len(runs[0].Levels) > 0 && runs[0].Levels[0].Summary.Config.GPUs > 0 {
		perGPU = "out tok/s per GPU"
	}
	given := func(name string, of func(all, each float64) float64) source[levelRow] {
		return number(name, func(p levelRow) *float64 {
			all, each, ok := rates(p.level)
			if !ok {
				return nil
			}
			return new(of(all, each))
		})
	}
	sources = append(sources,
		given(perGPU, func(all, _ float64) float64 { return all }),
		given("tok/s per user", func(_, each float64) float64 { return each }),
		statistic("mean TPOT", metric.TPOT, func(s *metric.Stats) *float64 { return &s.Mean }),
		textColumn("best", func(p levelRow) string {
			if onParetoFront(p.level, runs) {
				return "*"
			}
			return ""
		}),
	)
	if slices.ContainsFunc(runs, func(r outcome.Run) bool { return r.Predicted() || r.Invalid() > 0 }) {
		sources = append(sources, verdictColumn(func(p levelRow) levelRow { return p }))
	}
	return tableOf(sources, (&Report{Runs: runs}).levelRows)
}
