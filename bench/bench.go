// Package bench runs plans from other programs: it is tacho as a library.
//
// Run measures the levels of a plan, stores their records below the plan's RunsDir
// and returns their results. All types of this package can be used from another
// module.
package bench

import (
	"context"
	"errors"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/run"
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
