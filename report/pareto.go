package report

import (
	"bufio"
	"io"
	"slices"

	"tacho/metric"
	"tacho/outcome"
)

// Pareto is the name of the format of the same name.
const Pareto = "pareto"

var paretoFormat = Format{
	Name: Pareto, Doc: "throughput against the speed that a user sees, for each level; * has no better in both",
	Render: func(w io.Writer, r *Report) error {
		out := bufio.NewWriter(w) // keeps the first error for Flush
		table := trades(r.Runs)
		lines, err := table.strings(false)
		if err != nil {
			return err
		}
		printer{out}.table(lines)
		return out.Flush()
	},
}

// trade is what a level gives to all its users and to each of them; false where
// nothing was measured.
func trade(l *outcome.Level) (all, each float64, ok bool) {
	tpot := l.Summary.Dist(metric.TPOT).Stats
	if t := l.Summary.Throughput; t != nil && tpot != nil && tpot.Mean > 0 {
		return t.OutputTokensPerS / max(l.Summary.Config.GPUs, 1), 1e3 / tpot.Mean, true
	}
	return 0, 0, false
}

// best says whether no other level gives more both to all and to each.
func best(l *outcome.Level, runs []outcome.Run) bool {
	all, each, ok := trade(l)
	return ok && !slices.ContainsFunc(runs, func(r outcome.Run) bool {
		return slices.ContainsFunc(r.Levels, func(o outcome.Level) bool {
			a, e, ok := trade(&o)
			return ok && a >= all && e >= each && (a > all || e > each)
		})
	})
}

// trades is one line for each level.
func trades(runs []outcome.Run) table {
	sources := where(runs)
	perGPU := "out tok/s"
	if len(runs) > 0 && len(runs[0].Levels) > 0 && runs[0].Levels[0].Summary.Config.GPUs > 0 {
		perGPU = "out tok/s per GPU"
	}
	given := func(name string, of func(all, each float64) float64) source[place] {
		return number(name, func(p place) *float64 {
			all, each, ok := trade(p.level)
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
		words("best", func(p place) string {
			if best(p.level, runs) {
				return "*"
			}
			return ""
		}),
	)
	if slices.ContainsFunc(runs, func(r outcome.Run) bool { return r.Predicted() }) {
		sources = append(sources, judged(func(p place) place { return p }))
	}
	return tableOf(sources, (&Report{Runs: runs}).places)
}
