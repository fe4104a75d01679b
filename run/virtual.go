package run

import (
	"context"
	"fmt"
	"time"

	"tacho"
	"tacho/live"
	"tacho/metric"
	"tacho/pace"
	"tacho/predict"
	"tacho/sim/step"
)

// compute runs a level in virtual time: the same sessions at the same times, on
// a model of the engine. The simulated engine that was started is only asked what
// a server is asked: its model, how it counts tokens, how much it takes.
func (r *Runner) compute(ctx context.Context, s *level, sink tacho.Sink) error {
	profile, err := step.Load(r.Plan.Sim)
	if err != nil {
		return &UsageError{err}
	}
	router, err := predict.FindRouter(r.Plan.Router)
	if err != nil {
		return &UsageError{fmt.Errorf("--router: %w", err)}
	}
	server, err := predict.NewFleet(profile, r.Plan.Replicas, router, r.seedOf(s.Level))
	if err != nil {
		return err
	}
	out, feed := &s.outcome, &live.Feed{}
	r.live = feed
	out.Summary.Config = s.config
	out.Epoch, out.Monotonic = time.Now(), monotonicSeconds()
	if r.hooks.Begin != nil {
		if err := r.hooks.Begin(out, feed); err != nil {
			return err
		}
	}
	sum := &metric.Accumulator{Goodput: s.config.Goodput, Stall: s.config.StallMillis}
	blocks := 0
	if profile.KV.PrefixCache {
		blocks = profile.KV.BlockTokens
	}
	err = predict.Run(ctx, predict.Stage{
		Index: s.Index, Arrivals: pace.Stripe(s.pacer.Arrivals(), 0, 1), Limit: s.Concurrency, Source: r.named(s.work, s.Level),
		Server: server, BlockTokens: blocks, Enough: r.Enough, Timeout: r.Plan.RequestTimeout.Duration(), MaxTime: r.Plan.MaxSeconds.Duration(),
	}, computed{finisher{sink, r, sum}, feed})
	s.config.Interrupted, s.config.Predicted = ctx.Err() != nil, true
	s.config.Known = append(s.config.Known, metric.Reason{
		Code: "predicted", Severity: metric.Note,
		Text: fmt.Sprintf("nothing was measured: this is what a model of an engine (%s) makes of the load in virtual time: measure a real server before you rely on it", r.engines()),
	})
	r.sumUp(s, sum, nil)
	return err
}

// engines are what computed the run, in words.
func (r *Runner) engines() string {
	if r.Plan.Replicas == 1 {
		return r.Plan.Sim
	}
	return fmt.Sprintf("%d x %s, %s", r.Plan.Replicas, r.Plan.Sim, r.Plan.Router)
}

// computed is a Sink that has its records watched.
type computed struct {
	tacho.Sink
	feed *live.Feed
}

// Add implements tacho.Sink.
func (c computed) Add(rec *tacho.Record) error {
	c.feed.Computed(rec)
	return c.Sink.Add(rec)
}
