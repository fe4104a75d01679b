package metric_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// The interval of a mean time never begins below 0. Some of these would, because a few requests are
// hundreds of times slower than the others.
func TestIntervalsOfTimesArePossible(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	atZero := 0
	for range 50 {
		var records []*tacho.Record
		for i := range 200 {
			sent, ttft := time.Duration(i)*50*ms, 5*ms
			if rng.IntN(100) == 0 {
				ttft = 2000 * ms
			}
			records = append(records, request(sent, sent+ttft, sent+ttft+100*ms))
		}
		s := sumUp(metric.DefaultConfig(), records...)
		stats := s.Dist(metric.TTFT).Stats
		if in := stats.MeanInterval; in.Low != nil {
			if *in.Low < 0 || *in.Low > *in.Value || *in.High < *in.Value {
				t.Errorf("the interval of a mean of %v ms is %v to %v", *in.Value, *in.Low, *in.High)
			}
			if *in.Low == 0 {
				atZero++
			}
		}
	}
	if atZero == 0 {
		t.Error("no interval ends at 0: choose values that vary more")
	}
}
