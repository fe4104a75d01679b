package run

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// Run measures the levels of the plan in order. Levels in before are skipped. If
// ctx is canceled, the observer gets the finished part of the level, and Run
// returns ctx's error.
func (r *Runner) Run(ctx context.Context, sink tacho.Sink, before ...outcome.Level) error {
	c := &chooser{r: r, sink: sink}
	for i := range before {
		c.note(&before[i])
	}
	if r.Asked.Swept() != "" {
		return r.loop(ctx, c.sweeps(ctx))
	}
	return r.loop(ctx, c.list)
}

// A levelRun is a level of a run, with what differs between lists and searches.
type levelRun struct {
	plan.Level
	sink    tacho.Sink
	enough  <-chan struct{}                       // closed to stop sending; requests in flight finish; may be nil
	reasons func(*metric.Summary) []metric.Reason // adds reasons to the verdict; may be nil
	outcome *outcome.Level                        // set by the loop
}

// loop measures levels one after another. The next level may depend on the outcomes of
// the levels before.
func (r *Runner) loop(ctx context.Context, steps iter.Seq2[*levelRun, error]) error {
	begun := false
	for s, err := range steps {
		if err == nil && begun {
			err = r.rest(ctx)
		}
		if err != nil {
			return err
		}
		begun, r.Enough = true, s.enough
		s.outcome, err = r.measure(ctx, s)
		r.Enough = nil
		if s.outcome != nil {
			r.env.Observer.LevelEnded(s.outcome)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A chooser chooses the levels of a list or a sweep.
type chooser struct {
	r    *Runner
	sink tacho.Sink
	past []pastLevel
	left []plan.Level // remaining levels of a list
}

// list yields the levels of a list.
func (c *chooser) list(yield func(*levelRun, error) bool) {
	c.left = c.r.order()
	c.leaveOut()
	c.left = slices.DeleteFunc(c.left, func(l plan.Level) bool { return c.has(l.Index) })
	for len(c.left) > 0 {
		l := c.left[0]
		c.left = c.left[1:]
		if !c.yield(yield, l) {
			return
		}
	}
}

// yield yields a level and notes its outcome.
func (c *chooser) yield(yield func(*levelRun, error) bool, l plan.Level) bool {
	s := &levelRun{Level: l, sink: c.sink, reasons: func(s *metric.Summary) []metric.Reason { return c.end(l, seen(s)) }}
	if !yield(s, nil) {
		return false
	}
	c.note(s.outcome)
	return true
}

// A pastLevel is a finished level.
type pastLevel struct {
	outcome.Setting
	search.Seen
}

func (c *chooser) note(l *outcome.Level) {
	c.past = append(c.past, pastLevel{l.Setting, seen(&l.Summary)})
}

func (c *chooser) has(index int) bool {
	return slices.ContainsFunc(c.past, func(p pastLevel) bool { return p.Index == index })
}

// seen extracts the values of a level that describe the shape of the load
// curve.
func seen(s *metric.Summary) search.Seen {
	out := search.Seen{Latency: s.Classic(metric.E2EL).Mean, Failed: s.Completed == 0 && s.Failed > 0}
	if s.Throughput != nil {
		out.Throughput = s.Throughput.RequestsPerS
	}
	return out
}

// order returns the levels of the plan in execution order. Repeats run as
// rounds, so that changes over time affect all levels equally.
func (j *job) order() []plan.Level {
	levels := j.Asked.Levels()
	if j.Asked.ShuffleLevels {
		rng := rand.New(rand.NewPCG(j.Seed, 0x6c6576656c73))
		rng.Shuffle(len(levels), func(i, k int) { levels[i], levels[k] = levels[k], levels[i] })
	}
	slices.SortStableFunc(levels, func(a, b plan.Level) int { return a.Repeat - b.Repeat })
	return levels
}

// rest pauses between two levels.
func (r *Runner) rest(ctx context.Context) error {
	select {
	case <-time.After(r.Speed().Squeeze(r.Asked.LevelPause.Duration())):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter switches to the plan of a level. Servers are opened again if the level
// has different servers or requests.
func (r *Runner) enter(ctx context.Context, l plan.Level) error {
	if at := opening(l.Coordinates); !slices.Equal(at, r.opened) {
		r.Close()
		return r.open(ctx, l)
	}
	found, p := r.Plan, l.Plan
	p.Backend, p.BaseURL, p.Port, p.Endpoint, p.RequestIDPrefix = found.Backend, found.BaseURL, found.Port, found.Endpoint, found.RequestIDPrefix
	p.PromptText = p.PromptText || found.PromptText
	if r.replay != nil {
		p.Dataset = found.Dataset
	}
	r.Level = l
	r.use(r.Target.At(p))
	return nil
}

// opening returns the coordinates that require opening servers again.
func opening(at outcome.Coordinates) (out outcome.Coordinates) {
	for _, c := range at {
		if slices.Contains(openingOptions(), c.Name) || strings.HasSuffix(c.Name, ".dataset-name") { // of a class of the mix
			out = append(out, c)
		}
	}
	return out
}

// openingOptions are the options that define the servers and the form of
// requests.
var openingOptions = sync.OnceValue(func() []string {
	names := []string{"replay", "retries", "request-timeout", "dataset-name", "prompt-text", "skip-chat-template"}
	p := plan.Default()
	for _, o := range p.Options() {
		if o.Group == "Server" || o.Group == "Request" {
			names = append(names, o.Name)
		}
	}
	return names
})
