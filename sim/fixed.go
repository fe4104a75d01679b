package sim

import (
	"context"
	"sync/atomic"
	"time"
)

// fixedModel is a model without load effects: token k of every answer is due at arrival
// + ttft + k*itl. Deadlines are absolute, so lateness does not accumulate.
type fixedModel struct {
	clock     *clock
	ttft, itl time.Duration
	running   atomic.Int64
}

func (f *fixedModel) start(a *generation, arrival time.Duration) (run, error) {
	f.running.Add(1)
	return &fixedRun{fixedModel: f, arrival: arrival, length: a.limit}, nil
}

func (f *fixedModel) load() load { return load{running: int(f.running.Load())} }

func (f *fixedModel) dropCache() {} // there is no cache

type fixedRun struct {
	*fixedModel
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
