package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// A burst gets its epoch ahead. The monotonic time of a level is the
// clock at its epoch, because start times in result files count from the epoch.
func TestMonotonicAtEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		p := planFor(url, func(p *plan.Plan) { p.NumPrompts = 1000 })
		o := &epochObserver{t: t}
		r := must.Get(run.Open(t.Context(), p, run.Env{Random: 42, Dial: network.Dial, Observer: o}))(t)
		defer r.Close()
		if err := r.Run(t.Context(), &records{}); err != nil || !o.began {
			t.Error(o.began, err)
		}
	})
}

// An epochObserver compares the monotonic time of a level with the clock at its epoch.
type epochObserver struct {
	live.NopObserver
	t      *testing.T
	before float64
	began  bool
}

// LevelPrepared implements live.Observer.
func (o *epochObserver) LevelPrepared() error {
	o.before = run.MonotonicSeconds()
	return nil
}

// LevelStarted implements live.Observer.
func (o *epochObserver) LevelStarted(l *outcome.Level, _ *live.Feed) error {
	const rounding = 1e-6 // s
	o.began = true
	ahead, after := time.Until(l.Epoch), run.MonotonicSeconds()
	if ahead < 10*time.Millisecond {
		o.t.Errorf("the epoch is %v ahead", ahead)
	}
	if low, high := o.before+ahead.Seconds(), after+ahead.Seconds(); l.Monotonic < low-rounding || l.Monotonic > high+rounding {
		o.t.Errorf("%v at the epoch, want %v to %v", l.Monotonic, low, high)
	}
	return nil
}
