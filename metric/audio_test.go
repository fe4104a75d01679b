package metric_test

import (
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// RTFx is the seconds of audio served, divided by the duration.
func TestAudioSecondsPerSecond(t *testing.T) {
	var a metric.Accumulator
	add := func(seconds float64, end time.Duration, failure *tacho.Failure) {
		r := tacho.Record{Timeline: tacho.NewTimeline(0), AudioS: seconds, Failure: failure}
		r.Sent, r.End, r.Events = 0, end, tacho.Events{{At: end}}
		must.Do(t, a.Add(&r))
	}
	add(30, time.Second, nil)
	add(12.5, 2*time.Second, nil)
	add(0, time.Second, nil)
	add(100, 4*time.Second, &tacho.Failure{Cause: tacho.Reset})
	if got := a.Summary(metric.DefaultConfig()).Throughput.AudioSPerS; got != 42.5/4 {
		t.Errorf("%v, want %v", got, 42.5/4)
	}
}
