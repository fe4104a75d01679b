package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tacho/backend"
	"tacho/plan"
)

// mostAsk bounds a question to the server that is no request: what it
// serves, how many tokens a text has.
const mostAsk = 30 * time.Second

// askTimeout is how long a question may take: no longer than a request.
func askTimeout(p *plan.Plan) time.Duration {
	if limit := p.RequestTimeout.Duration(); limit > 0 {
		return min(mostAsk, limit)
	}
	return mostAsk
}

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
		return r.unreachable(ctx, err)
	}
	r.Model, r.ModelID = models[0].ID, models[0].ID
	if models[0].Root != "" {
		r.ModelID = models[0].Root
	}
	r.ModelID = r.env.Secrets.Hide(r.ModelID)
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
	ctx, cancel := context.WithTimeout(ctx, askTimeout(&r.Plan))
	defer cancel()
	return ask(ctx)
}

func (r *Runner) say(format string, a ...any) {
	if r.hooks.Say != nil {
		r.hooks.Say(r.env.Secrets.Sweep(fmt.Sprintf(format, a...)))
	}
}

// profile has the server start its profiler, and returns how to stop it.
func (r *Runner) profile(ctx context.Context) (func(), error) {
	if !r.Plan.Profile {
		return func() {}, nil
	}
	p := r.server.(backend.Profiler)
	if err := r.askProfiler(ctx, p, true); err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	r.say("Profiler started.")
	return func() {
		// The run may have been stopped; its profile is wanted all the same.
		if err := r.askProfiler(context.WithoutCancel(ctx), p, false); err != nil {
			r.say("The profiler did not stop: %v", err)
		}
	}, nil
}

func (r *Runner) askProfiler(ctx context.Context, p backend.Profiler, start bool) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout(&r.Plan))
	defer cancel()
	return p.Profile(ctx, start)
}
