package search

import (
	"math"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// A tally judges the goals of a level. Failed requests are slower than all others.
func TestTally(t *testing.T) {
	goals := must.Get(ParseSLO("ttft:p90<100ms,error<20%"))(t)
	tally := func(slow, broken int) *Tally {
		out := NewTally(goals)
		for i := range 100 {
			r := tacho.NewRecord(0, &tacho.Request{}, 0)
			r.Sent, r.End = 0, time.Second
			first := 50 * time.Millisecond
			if i < slow {
				first = 300 * time.Millisecond
			}
			r.Events = tacho.Events{{At: first, Tokens: 1}, {At: time.Second, Tokens: 1}}
			r.Output = 2
			if i >= 100-broken {
				r.Events, r.Failure = nil, &tacho.Failure{Cause: tacho.Reset}
			}
			out.Add(r)
		}
		return out
	}
	for _, c := range []struct {
		slow, broken int
		missed       string
		value        float64
	}{
		{9, 0, "", 50}, {10, 0, "", 75}, {11, 0, "TTFT p90", 300}, {5, 5, "", 0}, {0, 15, "TTFT p90", math.Inf(1)},
	} {
		all := tally(c.slow, c.broken)
		g, _, missed := all.Missed()
		if missed != (c.missed != "") || missed && g.Words() != c.missed {
			t.Errorf("%d slow and %d failed: missed %v %s", c.slow, c.broken, missed, g.Words())
		}
		if v := all.Value(0); c.value > 0 && v != c.value && !(math.Abs(v-c.value) < 1e-6) {
			t.Errorf("%d slow and %d failed: p90 is %v and not %v", c.slow, c.broken, v, c.value)
		}
	}
	if tally(9, 0).Lost(100) || !tally(12, 0).Lost(100) || tally(12, 0).Lost(1000) {
		t.Error("when a level is lost is not seen")
	}
}
