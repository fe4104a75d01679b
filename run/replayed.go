package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"tacho"
	"tacho/internal/target"
	"tacho/metric"
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
	Loop    int              // the limit of a closed loop, whose answers decide when the next request goes; 0: it was none
}

// takeReplay finds what is to be sent again, if the plan says so, and puts its data
// into the plan.
func (r *Runner) takeReplay(p *plan.Plan) (err error) {
	if r.replay = nil; p.Replay == "" {
		return nil
	}
	if r.env.Replay == nil {
		return &UsageError{Err: errors.New("--replay: kept runs cannot be read here")}
	}
	if r.replay, err = r.env.Replay(p.Replay); err != nil {
		return &UsageError{Err: fmt.Errorf("--replay %s: %w", p.Replay, err)}
	}
	p.Dataset = r.replay.Dataset
	if err := target.CheckFiles(p); err != nil {
		return &UsageError{Err: fmt.Errorf("--replay %s: its data is not there any more: %w", p.Replay, err)}
	}
	return nil
}

// schedule settles when the sessions of a replay go. A closed loop in virtual time
// goes again as a loop: a faster engine gets more requests. On a server the times are
// kept, and a note says so.
func (r *Runner) schedule(s *level) {
	s.Prompts, s.Inputs, s.pacer = r.replay.Len(), r.replay.Len(), r.replay.Sessions
	if r.loops() {
		s.pacer, s.Concurrency = pace.Closed{Count: r.replay.Len()}, cmp.Or(s.Concurrency, r.replay.Loop)
	}
	r.Level = s.Level
}

// loops says whether a closed loop is run again as such.
func (r *Runner) loops() bool { return r.replay != nil && r.replay.Loop > 0 && r.Plan.Virtual }

// pinned is the note on the send times of a closed loop; nil if they are not kept.
func (r *Runner) pinned() []metric.Reason {
	if r.replay == nil || r.replay.Loop == 0 || r.loops() {
		return nil
	}
	return []metric.Reason{{Code: "replay-pinned", Severity: metric.Note, Text: fmt.Sprintf(
		"%s was a closed loop of %d requests: its send times are kept, so the load does not follow the speed of this server: to repeat the loop, repeat its command", r.Plan.Replay, r.replay.Loop)}}
}

// mostCompared bounds the sessions that are looked at before a replay.
const mostCompared = 1000

// again makes the workload of the level that is sent again, and complains if it is
// not what it was.
func (r *Runner) again(ctx context.Context, l plan.Level) (workload.Workload, error) {
	l.Prompts, l.Inputs = r.replay.Inputs, r.replay.Inputs
	work, err := r.Target.Workload(ctx, l, r.replay.Seed, r.replay.Endless)
	if err != nil && r.replay.Inputs == 0 && ctx.Err() == nil {
		return nil, &UsageError{Err: fmt.Errorf("--replay %s: time ended that run, so it states no number of prompts, and its dataset cannot be made again without one: %w", r.Plan.Replay, err)}
	}
	if err != nil {
		return nil, err
	}
	out := replayed{work, r.replay.Over(work)}
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
		return work, nil // pauses are those of the workload
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
