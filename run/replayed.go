package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"tacho"
	"tacho/pace"
	"tacho/plan"
	"tacho/replay"
	"tacho/workload"
)

// A Replay is what a kept level sent, and what makes it again.
type Replay struct {
	*replay.Sessions
	Dataset workload.Dataset // of that run, at that level
	Seed    uint64           // of that level
	Inputs  int              // prompts that were asked for; 0 is no end
	Endless bool             // time ended it, so that data that was used up began again
}

// takeReplay finds what is to be sent again, if the plan says so.
func (r *Runner) takeReplay(context.Context) (err error) {
	if r.replay = nil; r.Plan.Replay == "" {
		return nil
	}
	if r.env.Replay == nil {
		return &UsageError{errors.New("--replay: kept runs cannot be read here")}
	}
	if r.replay, err = r.env.Replay(r.Plan.Replay); err != nil {
		return &UsageError{fmt.Errorf("--replay %s: %w", r.Plan.Replay, err)}
	}
	r.Plan.Dataset = r.replay.Dataset
	if err := checkFiles(&r.Plan); err != nil {
		return &UsageError{fmt.Errorf("--replay %s: its data is not there any more: %w", r.Plan.Replay, err)}
	}
	return nil
}

// mostCompared bounds the sessions that are looked at before a replay.
const mostCompared = 1000

// again makes the workload of the level that is sent again, and complains if it is
// not what it was.
func (r *Runner) again(ctx context.Context, l plan.Level) (workload.Workload, error) {
	l.Prompts, l.Inputs = r.replay.Inputs, r.replay.Inputs
	r.feed.endless = r.replay.Endless
	work, err := r.feed.workload(ctx, l, r.replay.Seed)
	if err != nil {
		return nil, err
	}
	out := replayed{work, r.replay.Over(work)}
	n := 0
	for i := range r.replay.Numbered() {
		if _, err := out.Session(i); err != nil {
			return nil, &UsageError{fmt.Errorf("--replay %s: %w", r.Plan.Replay, err)}
		}
		if n++; n == mostCompared {
			break
		}
	}
	return out, nil
}

// replayed is a workload at the times at which it was sent before.
type replayed struct {
	workload.Workload
	source tacho.Source
}

// Session implements tacho.Source.
func (w replayed) Session(i uint64) (tacho.Session, error) { return w.source.Session(i) }

// rate is how many sessions of a level are due in a second; +Inf is all at once.
func (r *Runner) rate(l plan.Level) float64 {
	if r.replay != nil {
		return r.replay.Rate()
	}
	return l.Rate
}

// due are the numbers of the sessions and when they are due, by our clock.
func (f Speed) due(p tacho.Pacer) iter.Seq2[uint64, time.Duration] {
	again, ok := p.(*replay.Sessions)
	if !ok {
		return pace.Stripe(f.arrivals(p.Arrivals()), 0, 1)
	}
	return func(yield func(uint64, time.Duration) bool) {
		for i, at := range again.Numbered() {
			if !yield(i, f.Squeeze(at)) {
				return
			}
		}
	}
}

// workSeed is the seed of what a level sends.
func (r *Runner) workSeed(l plan.Level) uint64 {
	if r.replay != nil {
		return r.replay.Seed
	}
	return r.seedOf(l)
}

// LevelSeed is the seed of a level: one seed fixes the run, and yet no two levels
// share prompts, for a server's cache would answer the second of them. The first
// level has the seed itself, so that it is the same as a run of its own.
func LevelSeed(seed uint64, index int) uint64 { return seed + uint64(index)*0x9e3779b97f4a7c15 }
