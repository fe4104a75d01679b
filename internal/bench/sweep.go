package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// ServePrefix starts the names of coordinates that are server settings.
const ServePrefix = "serve."

// A Setting is one configuration of a server in a sweep.
type Setting struct {
	At outcome.Coordinates // of its levels; names begin with ServePrefix
	// Start starts the server and sets its address in the plan. died ends the setting
	// with an error if the server exits by itself.
	Start func(p *plan.Plan, died context.CancelCauseFunc) (stop func(), err error)
	// Explain adds the cause to the error of a server that never answered. May be nil.
	Explain func(error) error
}

// String returns the values of the setting.
func (s *Setting) String() string {
	if len(s.At) == 0 {
		return "the server"
	}
	var out []string
	for _, c := range s.At {
		out = append(out, strings.TrimPrefix(c.Name, ServePrefix)+"="+c.Value)
	}
	return strings.Join(out, " ")
}

// Sweep checks a plan, measures it with each setting of a server and returns the results.
func Sweep(ctx context.Context, p plan.Plan, settings []Setting, o Options) (outcome.Run, error) {
	b, err := New(&p, o)
	if err != nil {
		return outcome.Run{}, err
	}
	defer b.Unpublish(ctx)
	b.Note(b.Sweep(ctx, p, settings, func(int) error { return b.Publish(ctx) }))
	return b.finish(ctx)
}

// Sweep measures a plan with each setting of a server. A failed setting does not end the
// sweep, unless nothing was measured before. connected is called when the server of a
// setting has answered.
func (b *Bench) Sweep(ctx context.Context, p plan.Plan, settings []Setting, connected func(i int) error) (failed error) {
	for i := range settings {
		s := &settings[i]
		err := b.setting(ctx, p, s, func() error { return connected(i) })
		switch {
		case ctx.Err() != nil || errors.As(err, new(DiskFull)):
			return err
		case err == nil:
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("%v: %w", s, err))
		if b.Keep == nil {
			return failed
		}
		b.Message(fmt.Sprintf("%v failed, the sweep continues: %v", s, err))
	}
	return failed
}

// setting starts the server with one setting, measures it and stops it.
func (b *Bench) setting(ctx context.Context, p plan.Plan, s *Setting, connected func() error) error {
	up, died := context.WithCancelCause(ctx)
	defer died(nil)
	cause := func(err error) error {
		if ctx.Err() == nil && up.Err() != nil { // the server exited
			return context.Cause(up)
		}
		return err
	}
	if err := b.Connect(up, p, func(p *plan.Plan, _ uint64) (func(), error) { return s.Start(p, died) }); err != nil {
		if s.Explain != nil && ctx.Err() == nil && up.Err() == nil {
			return s.Explain(err)
		}
		return cause(err)
	}
	defer b.Runner.Close()
	b.outer, b.base = s.At, len(b.Outcome.Levels)
	if err := connected(); err != nil {
		return err
	}
	return cause(b.Run(up))
}
