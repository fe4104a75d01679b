package run

import (
	"tacho"
	"tacho/pace"
	"tacho/plan"
	"tacho/workload"
)

// arrivals is when the sessions of a level are due: at the workload's own
// times, if it has some and nothing else was asked for.
func (r *Runner) arrivals(l plan.Level, work workload.Workload) (tacho.Pacer, error) {
	if own, ok := work.(tacho.Pacer); ok && r.Plan.OwnTimes() {
		return own, nil
	}
	p, _, err := pace.New(r.Plan.Pacing(l, r.seedOf(l)+l.Draw))
	return p, err
}

// Draw is when the requests of a level would arrive, had its arrivals been drawn
// otherwise.
func (r *Runner) Draw(l plan.Level, draw uint64) (tacho.Pacer, error) {
	p, _, err := pace.New(l.Plan.Pacing(l, r.seedOf(l)+draw))
	return p, err
}
