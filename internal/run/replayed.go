package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/replay"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// A Replay contains the send times of a stored level and the data to create its
// requests again.
type Replay struct {
	*replay.Sessions
	Dataset workload.Dataset // of the stored level
	Seed    uint64           // of the stored level
	Inputs  int              // requested prompts; 0 means unlimited
	Endless bool             // limited by time, so that exhausted data started again
	Loop    int              // limit of a closed loop, whose answers determine the next send times; 0 for an open loop
}

// takeReplay loads the replayed run and copies its dataset options to the plan,
// if the plan has --replay.
func (r *Runner) takeReplay(p *plan.Plan) (err error) {
	if r.replay = nil; p.Replay == "" {
		return nil
	}
	if r.env.Replay == nil {
		return &UsageError{Err: errors.New("--replay: stored runs are not available here")}
	}
	if r.replay, err = r.env.Replay(p.Replay); err != nil {
		return &UsageError{Err: fmt.Errorf("--replay %s: %w", p.Replay, err)}
	}
	p.Dataset = r.replay.Dataset
	if err := target.CheckFiles(p); err != nil {
		return &UsageError{Err: fmt.Errorf("--replay %s: the data of the run is missing: %w", p.Replay, err)}
	}
	return nil
}

// schedule sets the arrivals of a replay. In virtual time, a closed loop runs
// as a loop again, because a faster engine gets more requests. A real server
// gets the stored times, and a note in the report says so.
func (r *Runner) schedule(s *level) {
	s.Prompts, s.Inputs, s.pacer = r.replay.Len(), r.replay.Len(), r.replay.Sessions
	if r.loops() {
		s.pacer, s.Concurrency = pace.Closed{Count: r.replay.Len()}, cmp.Or(s.Concurrency, r.replay.Loop)
	}
	r.Level = s.Level
}

// loops reports whether a closed loop runs as a loop again.
func (r *Runner) loops() bool { return r.replay != nil && r.replay.Loop > 0 && r.Plan.Virtual }

// pinned returns the note on stored send times of a closed loop, or nil.
func (r *Runner) pinned() []metric.Reason {
	if r.replay == nil || r.replay.Loop == 0 || r.loops() {
		return nil
	}
	return []metric.Reason{{Code: "replay-pinned", Severity: metric.Note, Text: fmt.Sprintf(
		"%s was a closed loop of %d requests, and its stored send times do not adapt to this server: repeat its command instead", r.Plan.Replay, r.replay.Loop)}}
}

// mostCompared is the number of sessions compared before a replay.
const mostCompared = 1000

// again creates the workload of the replayed level and returns an error if it
// differs from the stored one.
func (r *Runner) again(ctx context.Context, l plan.Level) (workload.Workload, error) {
	l.Prompts, l.Inputs = r.replay.Inputs, r.replay.Inputs
	work, err := r.Target.Workload(ctx, l, r.replay.Seed, r.replay.Endless)
	if err != nil && r.replay.Inputs == 0 && ctx.Err() == nil {
		return nil, &UsageError{Err: fmt.Errorf("--replay %s: that run was limited by time, and its dataset needs a number of prompts: %w", r.Plan.Replay, err)}
	}
	if err != nil {
		return nil, err
	}
	out := replayed{work, r.replay.WithPrompts(work)}
	n := 0
	for i := range r.replay.Numbered() {
		if _, err := out.Session(i); err != nil {
			return nil, &UsageError{Err: fmt.Errorf("--replay %s: %w", r.Plan.Replay, err)}
		}
		if n++; n == mostCompared {
			break
		}
	}
	if r.loops() {
		return work, nil // the workload has its own pauses
	}
	return out, nil
}

// replayed is a workload with stored send times.
type replayed struct {
	workload.Workload
	source tacho.Source
}

// Session implements tacho.Source.
func (w replayed) Session(i uint64) (tacho.Session, error) { return w.source.Session(i) }

// rate returns the sessions per second of a level; +Inf means all immediately.
func (r *Runner) rate(l plan.Level) float64 {
	if r.replay != nil {
		return r.replay.Rate()
	}
	return l.Rate
}

// due returns session numbers and due times on the local clock.
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

// workSeed returns the seed of a level's workload.
func (r *Runner) workSeed(l plan.Level) uint64 {
	if r.replay != nil {
		return r.replay.Seed
	}
	if r.Asked.CheckAnswers {
		return r.Seed // the same prompts in every level
	}
	return r.seedOf(l)
}

// LevelSeed returns the seed of a level. One seed determines the entire run,
// but levels never share prompts, because the server's cache would answer them.
// The first level uses the seed itself, so that it equals a run of only that
// level.
func LevelSeed(seed uint64, index int) uint64 { return seed + uint64(index)*0x9e3779b97f4a7c15 }
