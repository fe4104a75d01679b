package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim/step"
)

// virtual is the executor that computes a level: the same sessions at the same
// times, on a model of the engine in virtual time. The simulated engine only
// answers metadata requests: its model, token counts and context length.
type virtual struct{ *Runner }

func (x virtual) underWay(context.Context, plan.Level) (bool, error) { return false, nil }

func (x virtual) ready(context.Context, *level) error { return nil }

func (x virtual) prepare(context.Context, *level) error { return nil }

func (x virtual) run(ctx context.Context, s *level, e *execution) error {
	made, fleet, err := x.fleet(s)
	if err != nil {
		return err
	}
	e.sum.Limit = computedLimit
	e.begin(time.Now())
	readings := &readings{fleet: fleet, every: x.Plan.MetricsInterval.Duration()}
	stage := x.virtualStage(s, &made, fleet)
	stage.SampleEvery, stage.Sample, stage.Enough, stage.Sent = readings.every, readings.read, x.enough(), e.feed.Sent
	err = predict.Run(ctx, stage, computed{finisher{e.sink, x.Runner, e.sum, nil}, e.feed})
	s.outcome.Samples = readings.samples
	s.config.Predicted, s.config.Simulated = true, false
	if s.config.GPUs == 0 {
		s.config.GPUs = float64(made.Profile.GPUs())
	}
	s.config.GPUs *= float64(made.Replicas)
	if err == nil {
		err = x.ranges(ctx, s, &made, e.sum)
	}
	s.config.Known = append(s.config.Known, metric.Reason{
		Code: "predicted", Severity: metric.Note,
		Text: fmt.Sprintf("nothing was measured, an engine model (%s) computed the results: measure a real server before relying on them", x.engines(made.Replicas)),
	})
	s.config.Known = append(s.config.Known, ignored(fleet)...)
	return err
}

// aside computes unmeasured requests of a level.
func (x virtual) aside(ctx context.Context, s *level, _ string, n, limit int) (metric.Summary, error) {
	made, fleet, err := x.fleet(s)
	if err != nil {
		return metric.Summary{}, err
	}
	stage := x.virtualStage(s, &made, fleet)
	stage.Arrivals, stage.Limit = pace.Stripe(pace.Closed{Count: n}.Arrivals(), 0, 1), limit
	sum := s.computed()
	err = predict.Run(ctx, stage, sum)
	return sum.Summary(metric.DefaultConfig()), err
}

// fleet creates the engines of the plan.
func (r *Runner) fleet(s *level) (made predict.FleetPlan, fleet *predict.Fleet, err error) {
	if made, err = r.fleetPlan(s); err == nil {
		fleet, err = predict.NewFleet(made)
	}
	if err != nil {
		err = &UsageError{Err: err}
	}
	return made, fleet, err
}

// computedLimit is the number of values per metric kept exactly if all values
// are computed. Such runs may be long, and the model is less exact than the
// histogram used beyond the limit.
const computedLimit = 1 << 17

// computed returns an accumulator with computedLimit.
func (s *level) computed() *metric.Accumulator {
	return &metric.Accumulator{Goodput: s.config.Goodput, Stall: s.config.StallMillis, Limit: computedLimit}
}

// virtualStage converts the level to a stage for a fleet.
func (r *Runner) virtualStage(s *level, made *predict.FleetPlan, fleet *predict.Fleet) predict.Stage {
	stage := predict.Stage{
		Index: s.Index, Arrivals: Speed(1).due(s.pacer), Limit: s.Concurrency, Source: r.named(s.work, s.Level),
		Server: fleet, Timeout: r.Plan.RequestTimeout.Duration(), MaxTime: r.Plan.MaxSeconds.Duration(),
		Reuse: true, ByPrefix: made.Policy.ByPrefix, Replica: fleet.Replica,
	}
	if kv := made.Profile.KV; kv.PrefixCache {
		stage.BlockTokens = kv.BlockTokens
	}
	if own := r.Plan.Priority; own != nil {
		stage.Priority = *own
	}
	if r.env.Server != nil {
		stage.Server, stage.Replica, stage.BlockTokens = r.env.Server(r.seedOf(s.Level)), nil, 0
	}
	return stage
}

// fleetPlan returns the fleet options of the plan.
func (r *Runner) fleetPlan(s *level) (f predict.FleetPlan, err error) {
	p := &r.Plan
	if f.Profile, err = step.Load(p.Sim); err != nil {
		return f, err
	}
	if r.drawn > 0 {
		f.Profile = predict.Draw(f.Profile, rand.New(rand.NewPCG(r.Seed, uint64(r.drawn))))
	}
	f.Replicas = max(p.Replicas, 1)
	if f.Policy, err = route.Find(p.Balance); err != nil {
		return f, fmt.Errorf("--router: %w", err)
	}
	f.Seed, f.RouteSeed = r.seedOf(s.Level), r.Seed // one router for all levels, as in a measured run
	return f, nil
}

// engines describes the engines of the run for people.
func (r *Runner) engines(replicas int) string {
	if replicas == 1 {
		return r.Plan.Sim
	}
	return fmt.Sprintf("%d x %s, %s", replicas, r.Plan.Sim, r.Plan.Balance)
}

// ignored returns notes on requests with properties that the profile ignores.
func ignored(u *predict.Fleet) (out []metric.Reason) {
	if u.FreeAdapters > 0 {
		out = append(out, metric.Reason{Code: "adapters-free", Severity: metric.Note, Text: fmt.Sprintf(
			"%d requests use an adapter, which costs nothing because the profile has no adapters: set lora.slots and its costs in the profile", u.FreeAdapters)})
	}
	if u.Unranked > 0 {
		out = append(out, metric.Reason{Code: "priorities-ignored", Severity: metric.Note, Text: fmt.Sprintf(
			"%d requests have a priority, which this profile ignores: set priority to true in the profile", u.Unranked)})
	}
	return out
}

// readings are samples of a computed metrics page. Their number does not grow
// with the run: when the buffer is full, every other sample is dropped and the
// interval doubles.
type readings struct {
	fleet   *predict.Fleet
	every   time.Duration
	samples []instrument.Sample
}

const mostReadings = 4096

func (r *readings) read(at time.Duration) (next time.Duration) {
	all, kv := r.fleet.Stats()
	r.samples = append(r.samples, instrument.Reading{
		Running: all.Running, Queued: all.Waiting, KVShare: kv, PrefixQueries: all.PrefixQueryTokens, PrefixHits: all.PrefixHitTokens,
		PromptTokens: all.PromptTokens, GeneratedTokens: all.GeneratedTokens, Preemptions: all.Preemptions, Finished: all.Finished,
	}.Sample("model", at))
	if len(r.samples) < mostReadings {
		return r.every
	}
	for i := range mostReadings / 2 {
		r.samples[i] = r.samples[2*i+1]
	}
	r.samples = r.samples[:mostReadings/2]
	r.every *= 2
	return r.every
}

// computed is a Sink that updates the live state.
type computed struct {
	tacho.Sink
	feed *live.Feed
}

// Add implements tacho.Sink.
func (c computed) Add(rec *tacho.Record) error {
	c.feed.Computed(rec)
	return c.Sink.Add(rec)
}
