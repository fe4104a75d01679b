package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// A burst gets its epoch 200 ms ahead. The monotonic time of a level is the
// clock at its epoch, because start times in result files count from the epoch.
func TestMonotonicAtEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		p := planFor(url, func(p *plan.Plan) { p.NumPrompts = 1000 })
		const rounding = 1e-6 // s
		before, began := 0.0, false
		open := func() error { before = run.MonotonicSeconds(); return nil }
		begin := func(l *outcome.Level, _ *live.Feed) error {
			began = true
			ahead, after := time.Until(l.Epoch), run.MonotonicSeconds()
			if ahead < 100*time.Millisecond {
				t.Errorf("the epoch is %v ahead", ahead)
			}
			if low, high := before+ahead.Seconds(), after+ahead.Seconds(); l.Monotonic < low-rounding || l.Monotonic > high+rounding {
				t.Errorf("%v at the epoch, want %v to %v", l.Monotonic, low, high)
			}
			return nil
		}
		r, err := run.Open(t.Context(), p, run.Env{Random: 42, Dial: network.Dial}, run.Hooks{Open: open, Begin: begin})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Run(t.Context(), &records{}, func(*outcome.Level) {}); err != nil || !began {
			t.Error(began, err)
		}
	})
}
