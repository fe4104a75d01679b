package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/engine"
	"tacho/metric"
	"tacho/pace"
	"tacho/workload"
)

const (
	// askTimeout bounds a question to the server that is no request: what it
	// serves, how many tokens a text has.
	askTimeout = 30 * time.Second
	// readyPause is between two tries to get a first answer.
	readyPause = time.Second
)

// findModel settles the model's name: the plan's, or the first the server lists.
func (r *Runner) findModel(ctx context.Context) error {
	p := &r.Plan
	r.Model, r.ModelID = p.ServedModelName, p.Model
	if r.Model == "" {
		r.Model = p.Model
	}
	if r.ModelID == "" {
		r.ModelID = r.Model
	}
	if r.Model != "" {
		return nil
	}
	_, server, err := r.newBackend(false)
	if err != nil {
		return &UsageError{err}
	}
	models, err := r.askUntilUp(ctx, server.Models)
	switch {
	case errors.Is(err, backend.ErrNoEndpoint), err == nil && len(models) == 0:
		return &UsageError{errors.New("the server does not say which model it serves: name it with --model")}
	case err != nil:
		return r.unreachable(err)
	}
	r.Model, r.ModelID = models[0].ID, models[0].ID
	if models[0].Root != "" {
		r.ModelID = models[0].Root
	}
	r.takeLimit(models)
	return nil
}

// askUntilUp asks for the models, again and again while the ready check lasts.
func (r *Runner) askUntilUp(ctx context.Context, ask func(context.Context) ([]backend.Model, error)) ([]backend.Model, error) {
	deadline := time.Now().Add(r.Plan.ReadyCheck.Duration())
	for {
		models, err := r.askOnce(ctx, ask)
		if err == nil || errors.Is(err, backend.ErrNoEndpoint) || !r.pause(ctx, deadline) {
			return models, err
		}
	}
}

func (r *Runner) askOnce(ctx context.Context, ask func(context.Context) ([]backend.Model, error)) ([]backend.Model, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return ask(ctx)
}

// pause waits before another try; false: there is no time for one.
func (r *Runner) pause(ctx context.Context, deadline time.Time) bool {
	if time.Until(deadline) < readyPause {
		return false
	}
	select {
	case <-time.After(readyPause):
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Runner) say(format string, a ...any) {
	if r.hooks.Say != nil {
		r.hooks.Say(replacer(r.Plan.secrets(r.env.APIKey)).Replace(fmt.Sprintf(format, a...)))
	}
}

// ready waits until the server answers a request, as long as the plan says; or
// sees at least that it can be reached.
func (r *Runner) ready(ctx context.Context) error {
	if r.Plan.ReadyCheck == 0 {
		if err := r.warm(ctx, len(r.clients), 0); err != nil {
			return r.unreachable(err)
		}
		return nil
	}
	work, err := r.workload(ctx, Level{Prompts: 1}, r.Seed+1)
	if err != nil {
		return err
	}
	r.say("Waiting up to %v for the server to answer.", r.Plan.ReadyCheck.Duration())
	deadline := time.Now().Add(r.Plan.ReadyCheck.Duration())
	for try := uint64(0); ; try++ {
		rec, err := r.tryOnce(ctx, work, try, deadline)
		if err != nil || rec.OK() {
			return err
		}
		if f := rec.Failure; hopeless(f) || !r.pause(ctx, deadline) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return r.unreachable(fmt.Errorf("no answer to a request within %v: %w", r.Plan.ReadyCheck.Duration(), f))
		}
	}
}

// hopeless says whether the server will go on to refuse.
func hopeless(f *tacho.Failure) bool {
	switch f.Status {
	case 400, 401, 403, 413, 422:
		return true
	}
	return f.Cause == tacho.Malformed || f.Cause == tacho.TLS
}

// tryOnce sends one request of the ready check.
func (r *Runner) tryOnce(ctx context.Context, work workload.Workload, try uint64, deadline time.Time) (*tacho.Record, error) {
	// Prompts far from those of the warm-up: it is to see new ones.
	sess, err := work.Warmup(1<<32 + try)
	if err != nil {
		return nil, err
	}
	q := &sess.Turns[0].Request
	q.ID = fmt.Sprintf("%sready-%d", r.Plan.RequestIDPrefix, try)
	q.Quote(nil)
	call, err := r.backend.Prepare(q)
	if err != nil {
		return nil, &UsageError{err}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
	call.Do(ctx, time.Now(), rec)
	return rec, nil
}

// warmUp sends the warm-up requests, under the level's limit.
func (r *Runner) warmUp(ctx context.Context, l Level, work workload.Workload) error {
	if r.Plan.NumWarmups <= 0 {
		return nil
	}
	r.say("Warming up with %d requests.", r.Plan.NumWarmups)
	var sum metric.Accumulator
	limit := l.Concurrency
	if limit == 0 {
		limit = r.Plan.NumWarmups
	}
	err := engine.Run(ctx, engine.Stage{
		Arrivals: pace.Stripe(pace.Closed{Count: r.Plan.NumWarmups}.Arrivals(), 0, 1), Limit: limit, Backend: r.backend,
		Source: warmups{work, r.Plan.RequestIDPrefix + levelPrefix(&r.Plan, l)}, Timeout: r.Plan.RequestTimeout.Duration(),
	}, &sum)
	if err != nil {
		return err
	}
	if s := sum.Summary(metric.DefaultConfig()); len(s.Failures) > 0 {
		f := s.Failures[0]
		r.say("%d of %d warm-up requests failed: %s: %s", s.Failed, r.Plan.NumWarmups, f.Cause, f.Example)
	}
	return nil
}

// profile has the server start its profiler, and returns how to stop it.
func (r *Runner) profile(ctx context.Context) (func(), error) {
	if !r.Plan.Profile {
		return func() {}, nil
	}
	p := r.server.(backend.Profiler)
	if err := p.Profile(ctx, true); err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	r.say("Profiler started.")
	return func() {
		// The run may have been stopped; its profile is wanted all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		if err := p.Profile(ctx, false); err != nil {
			r.say("The profiler did not stop: %v", err)
		}
	}, nil
}
