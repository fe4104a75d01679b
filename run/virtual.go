package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tacho"
	"tacho/instrument"
	"tacho/live"
	"tacho/metric"
	"tacho/pace"
	"tacho/plan"
	"tacho/predict"
	"tacho/route"
	"tacho/sim/step"
)

// virtual is the executor that computes a level: the same sessions at the same
// times, on a model of the engine in virtual time. The simulated engine that was
// started is only asked what a server is asked: its model, how it counts tokens,
// how much it takes.
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
	stage.Every, stage.Look, stage.Enough, stage.Sent = readings.every, readings.read, x.Enough, e.feed.Sent
	err = predict.Run(ctx, stage, computed{finisher{e.sink, x.Runner, e.sum}, e.feed})
	s.outcome.Samples = readings.samples
	s.config.Predicted = true
	if s.config.GPUs == 0 {
		s.config.GPUs = made.GPUs()
	}
	s.config.GPUs *= fleet.Use().Mean()
	if err == nil {
		err = x.ranges(ctx, s, &made, e.sum)
	}
	s.config.Known = append(s.config.Known, metric.Reason{
		Code: "predicted", Severity: metric.Note,
		Text: fmt.Sprintf("nothing was measured: this is what a model of an engine (%s) makes of the load in virtual time: measure a real server before you rely on it", x.engines(fleet.Use().Most)),
	})
	s.config.Known = append(s.config.Known, fleetNotes(fleet.Use())...)
	return err
}

// aside computes requests of a level that are no part of it.
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

// fleet makes the engines that the plan asks for.
func (r *Runner) fleet(s *level) (made predict.FleetPlan, fleet *predict.Fleet, err error) {
	if made, err = r.fleetPlan(s); err == nil {
		fleet, err = predict.NewFleet(made)
	}
	if err != nil {
		err = &UsageError{Err: err}
	}
	return made, fleet, err
}

// computedLimit is how many values of a metric are kept one by one where all are
// computed: such runs may be long, and their model is not as exact as the bins
// that come then.
const computedLimit = 1 << 17

// computed sums up what is.
func (s *level) computed() *metric.Accumulator {
	return &metric.Accumulator{Goodput: s.config.Goodput, Stall: s.config.StallMillis, Limit: computedLimit}
}

// virtualStage is the level for a fleet.
func (r *Runner) virtualStage(s *level, made *predict.FleetPlan, fleet *predict.Fleet) predict.Stage {
	stage := predict.Stage{
		Index: s.Index, Arrivals: Speed(1).due(s.pacer), Limit: s.Concurrency, Source: r.named(s.work, s.Level),
		Server: fleet, Timeout: r.Plan.RequestTimeout.Duration(), MaxTime: r.Plan.MaxSeconds.Duration(),
		Retries: r.Plan.Retries, Reuse: true, ByPrefix: made.Policy.ByPrefix, Replica: fleet.Replica,
	}
	if kv := made.Engines[0].Profile.KV; kv.PrefixCache {
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

// fleetPlan is what the plan says of engines.
func (r *Runner) fleetPlan(s *level) (f predict.FleetPlan, err error) {
	p := &r.Plan
	mix, err := step.LoadMix(p.Sim)
	if err != nil {
		return f, err
	}
	for _, share := range mix {
		if r.Drawn > 0 {
			share.Profile = predict.Draw(share.Profile, rand.New(rand.NewPCG(r.Seed, uint64(r.Drawn))))
		}
		f.Engines = append(f.Engines, predict.Engine{Profile: share.Profile, Count: share.Count})
	}
	if len(mix) == 1 && mix[0].Count == 1 {
		f.Engines[0].Count = max(p.Replicas, 1)
	}
	if f.Policy, err = route.Find(p.Balance); err != nil {
		return f, fmt.Errorf("--router: %w", err)
	}
	f.Seed, f.RouteSeed = r.seedOf(s.Level), r.Seed // bench has one router for all levels
	f.Scaling = predict.Scaling{Most: p.AutoscaleMax, Target: p.AutoscaleTarget, Delay: p.AutoscaleDelay.Duration(), DownAfter: p.AutoscaleDownAfter.Duration()}
	f.Scaling.By, _ = predict.FindSignal(p.AutoscaleBy) // the plan knows which there are
	f.Failures = predict.Failures{Between: p.ReplicaMTBF.Duration(), Repair: p.ReplicaRepair.Duration()}
	f.Failures.At, err = p.FailureTimes()
	return f, err
}

// engines are what computed the run, in words: so many at most.
func (r *Runner) engines(n int) string {
	name := r.Plan.Sim
	if r.Plan.Replicas > 1 {
		name = fmt.Sprintf("%d x %s", r.Plan.Replicas, name)
	}
	if n > 1 || r.Plan.AutoscaleMax > 0 {
		name += ", " + r.Plan.Balance
	}
	return name
}

// fleetNotes tell what became of a fleet.
func fleetNotes(u predict.Use) (out []metric.Reason) {
	if u.Started+u.Stopped > 0 {
		out = append(out, metric.Reason{Code: "autoscaled", Severity: metric.Note, Text: fmt.Sprintf(
			"%d to %d replicas, %.2f on average over the run: started %d, stopped %d", u.Least, u.Most, u.Mean(), u.Started, u.Stopped)})
	}
	if u.Failed > 0 {
		out = append(out, metric.Reason{Code: "replicas-failed", Severity: metric.Note, Text: fmt.Sprintf(
			"failures of replicas: %d, with %d requests in flight at them", u.Failed, u.LostRequests)})
	}
	if u.FreeAdapters > 0 {
		out = append(out, metric.Reason{Code: "adapters-free", Severity: metric.Note, Text: fmt.Sprintf(
			"%d requests name an adapter, and the profile says nothing of adapters, so that they cost nothing: give it lora.slots and what one costs", u.FreeAdapters)})
	}
	if u.Unranked > 0 {
		out = append(out, metric.Reason{Code: "priorities-ignored", Severity: metric.Note, Text: fmt.Sprintf(
			"%d requests have a priority, and the profile has none, so that all are served alike: give it priority: true", u.Unranked)})
	}
	return out
}

// readings are what a metrics page of the fleet would have said. They do not grow
// with the run: from so many on, every other one is dropped, and half as many are
// taken.
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
