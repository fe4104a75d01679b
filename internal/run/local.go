package run

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/plan"
)

// local is the executor that sends requests from this process.
type local struct{ *Runner }

func (x local) underWay(context.Context, plan.Level) (bool, error) { return false, nil }

func (x local) prepare(context.Context, *level) error { return nil }

// ready sends the test request and the warm-up, and opens connections.
func (x local) ready(ctx context.Context, s *level) error {
	ahead := x.warmAhead(ctx, s)
	defer ahead()
	if x.fresh {
		if err := x.Runner.ready(ctx, s.work); err != nil {
			return err
		}
	}
	if !x.continued {
		if err := x.warmUp(ctx, s); err != nil {
			return err
		}
	}
	x.fresh = false
	ahead()
	if err := x.Target.Warm(ctx, x.connections(s.Level), x.spares(s.Level)); err != nil {
		return x.Target.Unreachable(ctx, err)
	}
	if x.Speed() == 1 {
		s.config.RoundTripMillis = x.Target.RoundTrip(ctx)
	}
	return nil
}

// warmAhead opens connections during the test request if their number does not depend on
// the answer. The first call of wait waits for them. The later Warm reports errors.
func (x local) warmAhead(ctx context.Context, s *level) (wait func()) {
	if !x.fresh || x.Plan.ReadyCheck > 0 || s.Concurrency == 0 && !math.IsInf(x.rate(s.Level), 1) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = x.Target.Warm(ctx, x.connections(s.Level), x.spares(s.Level))
	}()
	return sync.OnceFunc(func() {
		if x.fresh { // the test request failed
			cancel()
		}
		<-done
		cancel()
	})
}

func (x local) run(ctx context.Context, s *level, e *execution) error {
	return x.observe(ctx, s, e, func(ctx context.Context, begin func(time.Time)) (known []metric.Reason, err error) {
		start := func(epoch time.Time, soFar func() *metric.Client) {
			e.feed.Client = soFar
			begin(epoch)
		}
		s.config.Client, known, err = x.send(ctx, x.stage(s, &e.feed.Counts), start, finisher{e.sink, x.Runner, e.sum, e.book})
		return known, err
	})
}

// observe reads metrics pages and sends probes during the load.
func (x local) observe(ctx context.Context, s *level, e *execution, load func(ctx context.Context, begin func(time.Time)) ([]metric.Reason, error)) error {
	pages := x.Target.Pages
	pages.ReadFirst(ctx)
	e.feed.Server = pages.Now
	late, probes := x.Target.SimLateness(ctx), &probes{r: x.Runner, stage: s.Index}
	known, err := load(ctx, func(epoch time.Time) {
		e.begin(epoch)
		probes.start(ctx, epoch)
		pages.Start(ctx, epoch)
	})
	err = errors.Join(err, probes.stop(e.sink))
	e.probe = probes.sum.Probe()
	s.outcome.Samples = x.Speed().samples(pages.Stop())
	s.config.Known = slices.Concat(s.config.Known, x.simulated(late, x.Target.SimLateness(context.WithoutCancel(ctx))), known)
	return err
}

// send runs a stage with the engine. It returns the health of this process and
// findings about its connections.
func (x local) send(ctx context.Context, stage engine.Stage, begin func(epoch time.Time, soFar func() *metric.Client), sink tacho.Sink) (*metric.Client, []metric.Reason, error) {
	var health *health
	stage.Begin = func(epoch time.Time) {
		health = x.newHealth()
		begin(epoch, health.soFar)
	}
	seen := x.Target.Wire()
	err := engine.Run(ctx, stage, sink)
	return health.end(), append(x.Target.Unkept(), x.Target.Network(seen)...), err
}

// aside sends unmeasured requests.
func (x local) aside(ctx context.Context, s *level, name string, n, limit int) (metric.Summary, error) {
	var sum metric.Accumulator
	err := engine.Run(ctx, engine.Stage{
		Arrivals: pace.Stripe(pace.Closed{Count: n}.Arrivals(), 0, 1), Limit: limit, Backend: x.Target.Backend,
		Source: warmups{s.work, x.setting, name}, Timeout: x.Plan.RequestTimeout.Duration(),
	}, &sum)
	return sum.Summary(metric.DefaultConfig()), err
}

// stage converts a level to an engine stage.
func (x local) stage(s *level, counts *engine.Live) engine.Stage {
	speed := x.Speed()
	return engine.Stage{
		Index: s.Index, Arrivals: speed.due(s.pacer), Limit: s.Concurrency,
		Source: speed.source(x.named(s.work, s.Level)), Backend: x.Target.Backend, Live: counts, Enough: x.enough(), Precise: x.env.Dial == nil, Count: x.Target.AnswerCounter(),
		Timeout: speed.Squeeze(x.Plan.RequestTimeout.Duration()), MaxTime: speed.Squeeze(x.Plan.MaxSeconds.Duration()),
		Grace: x.grace(),
	}
}

// usualGrace is how long requests in flight may take after --max-seconds, key n or a search has ended the sending. OpenAI's
// own clients give up after the same time.
const usualGrace = 10 * time.Minute

// grace returns the grace period of a stage. A timeout that the user has set is the only limit.
func (x local) grace() time.Duration {
	if x.Plan.Given("request-timeout") {
		return 0
	}
	return x.Speed().Squeeze(usualGrace)
}
