package run

import (
	"math"
	"slices"

	"tacho/live"
	"tacho/plan"
)

// Watched is the level that runs, as those see it who look on. It is the so many
// eth of the run, from 1.
func (r *Runner) Watched(number int) live.Level {
	out := r.watched(r.Level)
	out.Number = number
	if r.Asked.Swept() != "" {
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

// watched is what a level of the plan asks for.
func (r *Runner) watched(l plan.Level) live.Level {
	out := live.Level{Name: l.Name, Concurrency: l.Concurrency, Sessions: l.Prompts, Seconds: l.Plan.MaxSeconds.Duration().Seconds(), Predicted: l.Plan.Virtual}
	if rate := r.rate(l); !math.IsInf(rate, 0) {
		out.Rate = rate
	}
	return out
}
