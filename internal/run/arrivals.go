package run

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// arrivals returns the arrival process of a level: the workload's own times if
// it has them and the plan sets no others.
func (r *Runner) arrivals(l plan.Level, work workload.Workload) (tacho.Pacer, error) {
	if own, ok := work.(tacho.Pacer); ok && r.Plan.OwnTimes() {
		return own, nil
	}
	p, _, err := pace.New(r.Plan.Pacing(l, r.seedOf(l)+l.Draw))
	return p, err
}

// Draw returns the arrivals of a level for another random draw.
func (r *Runner) Draw(l plan.Level, draw uint64) (tacho.Pacer, error) {
	p, _, err := pace.New(l.Plan.Pacing(l, r.seedOf(l)+draw))
	return p, err
}
