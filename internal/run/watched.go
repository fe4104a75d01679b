package run

import (
	"math"
	"slices"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/plan"
)

// Watched describes the current level for live views. number counts the levels
// of the run from 1.
func (r *Runner) Watched(number int) live.Level {
	out := r.watched(r.Level)
	out.Number = number
	if r.Asked.Swept() != "" {
		r.watchSweep(&out)
		return out
	}
	all := r.order()
	if !slices.ContainsFunc(all, func(l plan.Level) bool { return l.Name == r.Level.Name }) {
		return out // a probe of a search
	}
	out.Of = len(all)
	later := 0.0
	for _, l := range all[min(number, len(all)):] {
		w := r.watched(l)
		seconds, known := w.Planned()
		if !known {
			return out
		}
		later += seconds + r.Asked.LevelPause.Duration().Seconds()
	}
	out.LaterS = &later
	return out
}

// watchSweep bounds the number of levels and the time of a sweep.
func (r *Runner) watchSweep(out *live.Level) {
	if out.AtMost = r.Asked.SweepPoints > 0; !out.AtMost {
		return
	}
	out.Of = r.Asked.SweepPoints * len(r.Asked.Levels())
	if out.Seconds > 0 {
		out.LaterS = new(float64(max(out.Of-out.Number, 0)) * (out.Seconds + r.Asked.LevelPause.Duration().Seconds()))
	}
}

// watched describes a level of the plan.
func (r *Runner) watched(l plan.Level) live.Level {
	out := live.Level{Name: l.Name, Concurrency: l.Concurrency, Sessions: l.Prompts, Seconds: l.Plan.MaxSeconds.Duration().Seconds(), Predicted: l.Plan.Virtual}
	if rate := r.rate(l); !math.IsInf(rate, 0) {
		out.Rate = rate
	}
	return out
}
