package run

import (
	"context"
	"errors"
	"time"

	"tacho"
	"tacho/live"
	"tacho/metric"
	"tacho/plan"
)

// An executor carries out levels. There are three: local sends requests from this
// process, agents have other machines send them, and virtual computes what a model
// of the server would do.
type executor interface {
	preparation
	// run runs a level, and adds to its config and samples what it found out.
	run(ctx context.Context, s *level, e *execution) error
	// aside runs n requests of a level that are not measured, limit at a time.
	aside(ctx context.Context, s *level, name string, n, limit int) (metric.Summary, error)
}

// A preparation is what comes before a level.
type preparation interface {
	// underWay says whether a level has begun already: an earlier coordinator
	// began it and is gone, and this run goes on with it.
	underWay(ctx context.Context, l plan.Level) (bool, error)
	// ready makes the servers ready for a level whose workload is settled.
	ready(ctx context.Context, s *level) error
	// prepare makes those ready who send the level.
	prepare(ctx context.Context, s *level) error
}

// An execution is where the events of a level go while it runs.
type execution struct {
	begin func(epoch time.Time) // to be called once, when the level's clock starts
	feed  *live.Feed            // what is known so far
	sum   *metric.Accumulator   // of all records
	sink  tacho.Sink            // gets the records, ready to be kept
	probe *metric.Probe         // of the requests beside the load; nil without
}

// executor is the one that the plan asks for.
func (r *Runner) executor() executor {
	switch {
	case r.Plan.Virtual:
		return virtual{r}
	case r.env.Agents != nil:
		return agents{local{r}}
	}
	return local{r}
}

// measure runs a level and sums it up.
func (r *Runner) measure(ctx context.Context, s *level, sink tacho.Sink) error {
	out := &s.outcome
	out.Summary.Config = s.config
	r.live = &live.Feed{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var began error
	e := &execution{feed: r.live, sink: sink, sum: &metric.Accumulator{Goodput: s.config.Goodput, Stall: s.config.StallMillis}}
	e.begin = func(epoch time.Time) {
		out.Epoch, out.Monotonic = epoch, monotonicAt(epoch)
		if r.hooks.Begin != nil {
			if began = r.hooks.Begin(out, e.feed); began != nil {
				cancel()
			}
		}
	}
	err := errors.Join(r.executor().run(ctx, s, e), began)
	s.config.Interrupted = ctx.Err() != nil
	r.sumUp(s, e)
	return err
}
