package tacho_test

import (
	"math"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
)

func TestSaturatedNanos(t *testing.T) {
	for d, want := range map[time.Duration]int32{5: 5, time.Hour: math.MaxInt32, -time.Hour: math.MinInt32} {
		if got := tacho.SaturatedNanos(d); got != want {
			t.Errorf("%v: %d, want %d", d, got, want)
		}
	}
}

func TestFirstAndLast(t *testing.T) {
	tl := tacho.NewTimeline(time.Second)
	if tl.Due != time.Second || tl.First() != tacho.Never || tl.Last() != tacho.Never || tl.Sent != tacho.Never {
		t.Errorf("%+v", tl)
	}
	tl.Events = tacho.Events{{At: 3}, {At: 8}}
	if tl.First() != 3 || tl.Last() != 8 {
		t.Errorf("first %v, last %v", tl.First(), tl.Last())
	}
}

// SlackOf never rounds down, and rounds up by an eighth at most.
func TestSlackRoundsUp(t *testing.T) {
	if s := tacho.Slack(0); s.Duration() != 0 {
		t.Errorf("none is %v", s.Duration())
	}
	for d := time.Duration(1); d < time.Hour; d += 1 + d/37 {
		s := tacho.SlackOf(d)
		if got := s.Duration(); got < d || d > 1024 && got > d+d/8+1 {
			t.Fatalf("%v became %v", d, got)
		}
		if again := tacho.SlackOf(s.Duration()); again != s {
			t.Fatalf("%v: %d became %d", d, s, again)
		}
	}
	if s := tacho.SlackOf(24 * time.Hour); s != tacho.MaxSlack {
		t.Errorf("a day is %v", s.Duration())
	}
}
