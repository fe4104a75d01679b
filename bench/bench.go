// Package bench runs plans from other programs: it is tacho as a library.
//
// Run measures the levels of a plan, stores their records below the plan's RunsDir
// and returns their results. Find searches for the highest load that meets an SLO. Sweep
// measures a server with several settings.
// Every type of this package can be used from another module.
package bench

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// Options configure a run in addition to its plan. The zero value measures a
// server without output.
type Options struct {
	APIKey   string                   // sent as a bearer token
	Resume   string                   // directory of an interrupted run to continue; empty for a new run
	Observer Observer                 // may be nil
	Getenv   func(name string) string // reads the variables of OpenTelemetry; nil ignores them
}

// inner returns the options of the implementation.
func (o *Options) inner(p *plan.Plan) (bench.Options, error) {
	if p.Agents > 0 {
		return bench.Options{}, errors.New("agents need the command tacho, set Agents to 0")
	}
	env := run.Env{APIKey: o.APIKey}
	if o.Observer != nil {
		env.Observer, env.Watch = &observer{Observer: o.Observer}, true
	}
	return bench.Options{Env: env, Resume: o.Resume, Getenv: o.Getenv}, nil
}

// Run checks a plan, measures its levels and returns their results. If ctx is
// canceled, Run returns the finished levels and ctx's error.
func Run(ctx context.Context, p plan.Plan, o Options) (outcome.Run, error) {
	inner, err := o.inner(&p)
	if err != nil {
		return outcome.Run{}, err
	}
	return bench.Run(ctx, p, inner)
}

// A Setting is one configuration of a server.
type Setting struct {
	Values outcome.Coordinates // names and values, for the report
	// Start starts the server and sets its address in the plan. Call died if the server
	// exits by itself: its levels fail, and the sweep continues.
	Start func(p *plan.Plan, died func(error)) (stop func(), err error)
}

// Sweep measures a plan with each setting of a server, as levels of one run. A failed
// setting does not end the sweep, unless nothing was measured before. If ctx is canceled,
// Sweep returns the finished levels and ctx's error.
func Sweep(ctx context.Context, p plan.Plan, settings []Setting, o Options) (outcome.Run, error) {
	inner, err := o.inner(&p)
	if err != nil {
		return outcome.Run{}, err
	}
	if o.Resume != "" {
		return outcome.Run{}, errors.New("a sweep of server settings cannot be resumed")
	}
	var all []bench.Setting
	for _, s := range settings {
		at := slices.Clone(s.Values)
		for i := range at {
			at[i].Name = bench.ServePrefix + at[i].Name
		}
		start := func(p *plan.Plan, died context.CancelCauseFunc) (func(), error) { return s.Start(p, died) }
		all = append(all, bench.Setting{At: at, Start: start})
	}
	return bench.Sweep(ctx, p, all, inner)
}

// A Goal describes a search for the highest load that meets an SLO.
type Goal struct {
	SLO      string        // as ttft:p99<500ms,error<0.1%
	Load     string        // rate, concurrency or users; empty is rate
	Within   string        // precision of the limit; empty is 5%
	From, To float64       // first and highest load; 0 is chosen
	Budget   time.Duration // most time for all probes; 0 is chosen
}

// A Limit is the answer of a search. Loads are 0 if unknown.
type Limit struct {
	Holds     bool    // a load meets the SLO
	Load      float64 // highest load that met the SLO
	Missed    float64 // lowest load above Load that missed the SLO
	Low, High float64 // 95 % confidence interval
	Decided   bool    // Missed is near Load, or no load meets the SLO
	Sentence  string
	Run       outcome.Run // with the probes as levels
}

// Find searches for the highest load that meets a goal. The plan sets no load and no
// lists. If ctx is canceled, Find returns the limit so far and ctx's error.
func Find(ctx context.Context, p plan.Plan, g Goal, o Options) (Limit, error) {
	inner, err := o.inner(&p)
	if err != nil {
		return Limit{}, err
	}
	g.Load, g.Within = cmp.Or(g.Load, string(search.Rate)), cmp.Or(g.Within, "5%")
	s, err := (*bench.Goal)(&g).Search(&p)
	if err != nil {
		return Limit{}, err
	}
	var out Limit
	out.Run, err = bench.Measure(ctx, p, inner, func(b *bench.Bench, ctx context.Context) error {
		err := b.Find(ctx, s)
		if b.Keep != nil {
			l := b.Limit(s, err == nil)
			out = Limit{Holds: l.Holds, Load: l.Load, Missed: l.Missed, Low: l.Low, High: l.High, Decided: l.Decided, Sentence: l.Sentence}
		}
		return err
	})
	return out, err
}
