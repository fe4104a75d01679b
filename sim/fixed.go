package sim

import (
	"context"
	"sync/atomic"
	"time"
)

// fixed is the model that does not feel load: token k of every answer is due
// at arrival + ttft + k*itl. The deadlines are absolute, so lateness never
// adds up.
type fixed struct {
	clock     *clock
	ttft, itl time.Duration
	running   atomic.Int64
}

func (f *fixed) start(a *ask, arrival time.Duration) (run, error) {
	f.running.Add(1)
	return &fixedRun{fixed: f, arrival: arrival, length: a.limit}, nil
}

func (f *fixed) load() load { return load{running: int(f.running.Load())} }

func (f *fixed) forget() {} // it has no cache

type fixedRun struct {
	*fixed
	arrival time.Duration
	have    int
	length  int
	timer   *time.Timer
}

func (r *fixedRun) next(ctx context.Context) (emission, error) {
	due := r.arrival + r.ttft + time.Duration(r.have)*r.itl
	if err := r.clock.sleep(ctx, &r.timer, due); err != nil {
		return emission{}, err
	}
	r.have++
	m := emission{tokens: 1, at: due, engineTimes: engineTimes{queued: r.arrival, admitted: r.arrival, firstMade: r.arrival + r.ttft, made: due, steps: r.have}}
	if r.have == r.length {
		m.last, m.finish = true, finishLength
	}
	return m, nil
}

func (r *fixedRun) stop() { r.running.Add(-1) }
