package run

import (
	"context"
	"errors"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/score"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
)

// An executor runs levels. There are three: local sends requests from this
// process, agents sends them from other machines, and virtual computes the
// results with a model of the server.
type executor interface {
	preparation
	// run runs a level and stores its findings in the level's config and
	// samples.
	run(ctx context.Context, s *level, e *execution) error
	// aside runs n unmeasured requests of a level with the given concurrency
	// limit.
	aside(ctx context.Context, s *level, name string, n, limit int) (metric.Summary, error)
}

// A preparation contains the steps before a level.
type preparation interface {
	// underWay reports whether an earlier coordinator started the level. The
	// run then continues the level.
	underWay(ctx context.Context, l plan.Level) (bool, error)
	// ready prepares the servers for a level with a fixed workload.
	ready(ctx context.Context, s *level) error
	// prepare prepares the senders of the level.
	prepare(ctx context.Context, s *level) error
}

// An execution receives the events of a running level.
type execution struct {
	begin func(epoch time.Time) // must be called once, when the level's clock starts
	feed  *live.Feed            // live state
	sum   *metric.Accumulator   // all records
	sink  tacho.Sink            // receives complete records
	probe *metric.Probe         // probe requests; nil without probes
	book  *score.Book           // answers
}

// executor returns the executor for the plan.
func (r *Runner) executor() executor {
	switch {
	case r.Plan.Virtual:
		return virtual{r}
	case r.env.Agents != nil:
		return agents{local{r}}
	}
	return local{r}
}

// execute runs a level and summarizes it.
func (r *Runner) execute(ctx context.Context, s *level, sink tacho.Sink) error {
	out := &s.outcome
	s.config.Planned = s.dueBefore(r.Plan.MaxSeconds.Duration())
	out.Summary.Config = s.config
	r.live = &live.Feed{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var began error
	e := &execution{feed: r.live, sink: sink, book: r.newBook(s), sum: &metric.Accumulator{Goodput: s.config.Goodput, Stall: s.config.StallMillis}}
	e.begin = func(epoch time.Time) {
		out.Epoch, out.Monotonic = epoch, monotonicAt(epoch)
		if began = r.env.Observer.LevelStarted(out, e.feed); began != nil {
			cancel()
		}
	}
	ending, done := newEnding(r.Enough)
	defer done()
	if !r.Plan.Virtual { // the clock of the user is not the clock of the level
		r.ending.Store(ending)
		defer r.ending.Store(nil)
	}
	err := errors.Join(r.executor().run(ctx, s, e), began)
	s.config.Interrupted = ctx.Err() != nil
	r.sumUp(s, e)
	return err
}
