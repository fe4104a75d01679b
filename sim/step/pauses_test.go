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
