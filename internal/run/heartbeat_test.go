package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/metric"
)

func TestPulse(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		beats [][2]time.Duration // time by the clock that stops during suspend, and by the other clock
		want  metric.Pauses
	}{
		{"steady", [][2]time.Duration{{20 * ms, 20 * ms}, {40 * ms, 40 * ms}}, metric.Pauses{}},
		{
			"jitter is no pause, but the longest is kept",
			[][2]time.Duration{{20 * ms, 20 * ms}, {70 * ms, 70 * ms}},
			metric.Pauses{LongestMillis: 30, AtS: 0.02},
		},
		{
			"stopped",
			[][2]time.Duration{{20 * ms, 20 * ms}, {2040 * ms, 2040 * ms}, {2060 * ms, 2060 * ms}},
			metric.Pauses{LongestMillis: 2000, AtS: 0.02, TotalS: 2, List: []metric.Stall{{AtS: 0.02, Millis: 2000}}},
		},
		{
			"stopped twice",
			[][2]time.Duration{{220 * ms, 220 * ms}, {540 * ms, 540 * ms}, {560 * ms, 560 * ms}},
			metric.Pauses{LongestMillis: 300, AtS: 0.22, TotalS: 0.5, List: []metric.Stall{{AtS: 0, Millis: 200}, {AtS: 0.22, Millis: 300}}},
		},
		{
			"suspended",
			[][2]time.Duration{{20 * ms, 20 * ms}, {40 * ms, 3040 * ms}, {60 * ms, 3060 * ms}},
			metric.Pauses{LongestMillis: 3000, AtS: 0.02, TotalS: 3, AsleepS: 3, List: []metric.Stall{{AtS: 0.02, Millis: 3000}}},
		},
		{"a clock that was set back is no sleep", [][2]time.Duration{{20 * ms, 20 * ms}, {40 * ms, -3000 * ms}}, metric.Pauses{}},
	} {
		var p pulse
		for _, b := range c.beats {
			p.beat(b[0], b[1])
		}
		if diff := cmp.Diff(c.want, p.pauses); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestStolenShare(t *testing.T) {
	before, ok := parseStolen("cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1 2 3\n")
	after, okToo := parseStolen("cpu  150 0 70 810 10 0 5 55 0 0\n")
	if !ok || !okToo || stolenShare(before, after) != 0.2 {
		t.Errorf("%v %v: %v, want 20 of 100", before, after, stolenShare(before, after))
	}
	if _, ok := parseStolen("intr 1 2 3\n"); ok {
		t.Error("a page without processors is believed")
	}
}
