package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// A run with a sample of marks gives the same counts, and nearly the same estimates, merged or not.
func TestSomeMarksTellNearlyTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all, some := &metric.Accumulator{}, metric.Keeping(2000)
	halves := [2]*metric.Accumulator{metric.Keeping(2000), metric.Keeping(3000)}
	for n := range 30_000 {
		at := time.Duration(n) * 10 * time.Millisecond
		r := &tacho.Record{Session: uint64(n), Timeline: tacho.NewTimeline(at), Output: 3, Usage: &tacho.Usage{Prompt: 10}}
		r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head, r.Clock = at, at, at, at, at, at, tacho.VirtualClock
		r.Server = &tacho.ServerTimes{Queue: time.Duration(1e6 * (5 + rng.ExpFloat64()))}
		first := at + time.Duration(1e6*(50+10*rng.ExpFloat64()))
		r.Events = tacho.Events{{At: first, Tokens: 1}, {At: first + 400e6, Tokens: 1}, {At: first + 800e6, Tokens: 1}}
		r.End = r.Last()
		for _, a := range []*metric.Accumulator{all, some, halves[n%3/2]} {
			must.Do(t, a.Add(r))
		}
	}
	halves[0].Merge(halves[1])
	c := metric.Config{RequestRate: 100, MaxConcurrency: 1000}
	want := all.Summary(c)
	for name, a := range map[string]*metric.Accumulator{"some": some, "merged": halves[0]} {
		got := a.Summary(c)
		if got.OneIn < 8 || want.OneIn != 0 {
			t.Errorf("%s: one in %d kept, and in %d of all", name, got.OneIn, want.OneIn)
		}
		w, g := want.Steady, got.Steady
		for _, f := range []struct {
			figure    string
			got, want float64
			within    float64
		}{
			{"rate", *got.Rate.AchievedPerS, *want.Rate.AchievedPerS, 0},
			{"touching a second", float64(got.Peaks.TouchingASecond), float64(want.Peaks.TouchingASecond), 0},
			{"in flight", float64(got.Peaks.InFlight), float64(want.Peaks.InFlight), 0.02},
			{"late", float64(got.Backlog.Late), float64(want.Backlog.Late), 0.2},
			{"due", float64(got.Backlog.Due), float64(want.Backlog.Due), 0.01},
			{"time", got.Where.All.Millis, want.Where.All.Millis, 0},
			{"slowest", got.Where.Slowest.Millis, want.Where.Slowest.Millis, 0.02},
			{"window", g.Window.ToS, w.Window.ToS, 0.01},
			{"window's requests", g.Window.RequestsPerS, w.Window.RequestsPerS, 0.01},
			{"window's tokens", g.Window.InputTokensPerS, w.Window.InputTokensPerS, 0.01},
			{"Little's in flight", g.Little.InFlight, w.Little.InFlight, 0.01},
			{"Little's rate", g.Little.SentPerS, w.Little.SentPerS, 0.01},
		} {
			if f.want == 0 || math.Abs(f.got/f.want-1) > f.within {
				t.Errorf("%s: %s: %v, want %v", name, f.figure, f.got, f.want)
			}
		}
	}
}
