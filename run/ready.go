package run

import (
	"context"
	"fmt"
	"time"

	"tacho"
	"tacho/engine"
	"tacho/metric"
	"tacho/pace"
	"tacho/plan"
	"tacho/workload"
)

// readyPause is between two tries to get a first answer, at most. A try needs
// leastTry to come to anything.
const (
	readyPause = time.Second
	leastTry   = 50 * time.Millisecond
)

// pause waits before another try; false: there is no time for one. Towards the
// end of the time there are more of them, so that little time is not none.
func pause(ctx context.Context, deadline time.Time) bool {
	wait := min(time.Until(deadline)/2, readyPause)
	if wait < leastTry {
		return false
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// ready has each server answer a request before any is measured: a mistake that
// all requests share should cost only one. A ready check waits for the answer.
func (r *Runner) ready(ctx context.Context, work workload.Workload) error {
	wait := r.Plan.ReadyCheck.Duration()
	if wait == 0 && r.Plan.NoTrial {
		return nil
	}
	if wait > 0 {
		r.say("Waiting up to %v for the server to answer.", wait)
	}
	deadline := time.Now().Add(wait)
	for i := range r.Target.each {
		for {
			f, err := r.try(ctx, i, work, deadline)
			if err != nil {
				return err
			}
			if f == nil {
				break
			}
			if hopeless(f) || !pause(ctx, deadline) {
				return r.Target.refused(ctx, i, f)
			}
		}
	}
	return nil
}

// hopeless says whether it is no use to try again.
func hopeless(f *tacho.Failure) bool {
	switch f.Status {
	case 400, 401, 403, 413, 422:
		return true
	}
	return f.Cause == tacho.Malformed || f.Cause == tacho.TLS
}

// try sends one request to one server, and returns how it failed.
func (r *Runner) try(ctx context.Context, server int, work workload.Workload, deadline time.Time) (*tacho.Failure, error) {
	// A number far from those of the warm-up, which should send other prompts.
	sess, err := work.Warmup(1<<32 + r.tries)
	if err != nil {
		return nil, err
	}
	q := &sess.Turns[0].Request
	q.ID = r.requestID(fmt.Sprintf("trial-%d", r.tries))
	r.tries++
	q.Quote(nil)
	call, err := r.Target.each[server].Prepare(q)
	if err != nil {
		return nil, &UsageError{err}
	}
	if r.Plan.ReadyCheck == 0 {
		deadline = time.Now().Add(r.Plan.RequestTimeout.Duration())
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
	call.Do(ctx, time.Now(), rec)
	if rec.Failure == nil {
		r.took = max(r.took, rec.End-rec.Sent)
		return nil, nil
	}
	return rec.Failure, r.textInstead(ctx, q, rec.Failure)
}

// warmUp sends the warm-up requests, under the level's limit. Those of the
// trial count among them.
func (r *Runner) warmUp(ctx context.Context, l plan.Level, work workload.Workload) error {
	n := r.Plan.NumWarmups
	if r.fresh && r.Plan.ReadyCheck == 0 {
		n -= int(r.tries)
	}
	if n <= 0 {
		return nil
	}
	r.say("Warming up with %d requests.", r.Plan.NumWarmups)
	limit := l.Concurrency
	if limit == 0 {
		limit = n
	}
	s, err := r.aside(ctx, work, levelPrefix(l)+"warmup", n, limit)
	if err == nil && len(s.Failures) > 0 {
		f := s.Failures[0]
		r.say("%d of %d warm-up requests failed: %s: %s", s.Failed, r.Plan.NumWarmups, f.Cause, f.Example)
	}
	return err
}

// aside sends requests whose prompts are never measured.
func (r *Runner) aside(ctx context.Context, work workload.Workload, name string, n, limit int) (metric.Summary, error) {
	var sum metric.Accumulator
	err := engine.Run(ctx, engine.Stage{
		Arrivals: pace.Stripe(pace.Closed{Count: n}.Arrivals(), 0, 1), Limit: limit, Backend: r.Target.backend,
		Source: warmups{work, r.job, name}, Timeout: r.Plan.RequestTimeout.Duration(),
	}, &sum)
	return sum.Summary(metric.DefaultConfig()), err
}
