package step

import (
	"testing"
	"time"
)

func TestPausesExtend(t *testing.T) {
	p := Pauses{EveryS: 20, LengthS: 0.5}
	const ms = time.Millisecond
	for _, c := range []struct{ from, took, want time.Duration }{
		{100 * ms, 10 * ms, 10 * ms},
		{19_995 * ms, 10 * ms, 510 * ms},        // the pause begins in the step
		{20_100 * ms, 10 * ms, 410 * ms},        // the step begins in the pause
		{20_500 * ms, 10 * ms, 10 * ms},         // or after it
		{19_000 * ms, 25_000 * ms, 26_000 * ms}, // two pauses
	} {
		if got := p.extend(c.from, c.took); got != c.want {
			t.Errorf("%v from %v: %v, want %v", c.took, c.from, got, c.want)
		}
		if got := (&Pauses{}).extend(c.from, c.took); got != c.took {
			t.Errorf("without pauses: %v", got)
		}
	}
}

// Many decode steps computed together end at the same times as steps computed one by one.
func TestPausesInJumps(t *testing.T) {
	p := Pauses{EveryS: 1, LengthS: 0.3}
	at := time.Duration(0)
	for range 1000 {
		at += p.extend(at, 7*time.Millisecond)
	}
	if want := 7*time.Second + 9*300*time.Millisecond; at != want { // 0.7 s of work between two pauses, and 1 s before the first
		t.Errorf("1,000 steps end at %v, want %v", at, want)
	}
}
