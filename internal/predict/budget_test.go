package predict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// The time limit bounds the whole fit. Steps without time are skipped and reported.
func TestBudgetBoundsFit(t *testing.T) {
	p := profile(t)
	p.KV.PrefixCache = false
	var sets []Set
	for _, limit := range []int{2, 8, 24} {
		name := fmt.Sprint("closed ", limit)
		level := seen(t, name, p, Stage{Arrivals: asap, Limit: limit, Source: talks{sessions: 4 * limit, turns: 1, prompt: 400, answer: 30}})
		sets = append(sets, Set{Name: name, Levels: []*MeasuredLevel{level}})
	}
	for _, tt := range []struct {
		tick  time.Duration // added each time the clock is read
		wants string
	}{
		{0, ""},
		{time.Second, "untested structures: chunked, prefill-first, reserve; the search for parameters ended early; held out: closed 8, closed 24; recommended runs"},
	} {
		clock, ticks := time.Unix(0, 0), 0
		l := must.Get(Learn(t.Context(), nil, sets, Options{Budget: 24 * time.Second, NoAdvice: tt.tick == 0, Now: func() time.Time {
			clock = clock.Add(tt.tick)
			ticks++
			return clock
		}}))(t)
		if got := strings.Join(l.Skipped, "; "); got != tt.wants {
			t.Errorf("a tick of %v: skipped %q, want %q", tt.tick, got, tt.wants)
		}
		if tt.tick > 0 && ticks > 60 {
			t.Errorf("looked at the clock %d times: it went on after its time", ticks)
		}
		if len(l.Parameters) == 0 || l.Profile.Cost.Decode == nil {
			t.Error("no model came of it")
		}
	}
}
