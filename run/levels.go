package run

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"tacho"
	"tacho/outcome"
	"tacho/plan"
)

// Run measures all levels of the plan, one after the other, and hands each to
// done. A stopped run returns ctx's error, after the outcome of what finished.
func (r *Runner) Run(ctx context.Context, sink tacho.Sink, done func(*outcome.Level)) error {
	for i, l := range r.order() {
		if i > 0 {
			if err := r.rest(ctx); err != nil {
				return err
			}
		}
		out, err := r.Measure(ctx, l, sink)
		if out != nil {
			done(out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order is the levels of the plan in the order in which they run. Repeats are
// rounds: what changes in the course of a run changes for all levels alike.
func (r *Runner) order() []plan.Level {
	levels := r.Asked.Levels()
	if r.Asked.ShuffleLevels {
		rng := rand.New(rand.NewPCG(r.Seed, 0x6c6576656c73))
		rng.Shuffle(len(levels), func(i, k int) { levels[i], levels[k] = levels[k], levels[i] })
	}
	slices.SortStableFunc(levels, func(a, b plan.Level) int { return a.Repeat - b.Repeat })
	return levels
}

// rest is the pause between two levels.
func (r *Runner) rest(ctx context.Context) error {
	select {
	case <-time.After(r.Speed().Squeeze(r.Asked.LevelPause.Duration())):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter takes up the plan of a level. Servers are opened again where the level
// has others, or asks them in another way.
func (r *Runner) enter(ctx context.Context, l plan.Level) error {
	if at := opening(l.Coordinates); !slices.Equal(at, r.opened) {
		r.Close()
		return r.open(ctx, l)
	}
	found := r.Plan
	r.Level, r.Plan = l, l.Plan
	p := &r.Plan
	p.Backend, p.BaseURL, p.Port, p.Endpoint, p.RequestIDPrefix = found.Backend, found.BaseURL, found.Port, found.Endpoint, found.RequestIDPrefix
	p.PromptText = p.PromptText || found.PromptText
	return nil
}

// opening are the coordinates that matter to whoever opens servers: another value
// is another server, or another way to ask it.
func opening(at outcome.Coordinates) (out outcome.Coordinates) {
	for _, c := range at {
		if slices.Contains(openingOptions(), c.Name) || strings.HasSuffix(c.Name, ".dataset-name") { // that of a class of the mix
			out = append(out, c)
		}
	}
	return out
}

// openingOptions are all that say whom to ask and how, and those of the load and
// the data on which the way to ask depends.
var openingOptions = sync.OnceValue(func() []string {
	names := []string{"retries", "request-timeout", "dataset-name", "prompt-text", "skip-chat-template"}
	p := plan.Default()
	for _, o := range p.Options() {
		if o.Group == "Server" || o.Group == "Request" {
			names = append(names, o.Name)
		}
	}
	return names
})
