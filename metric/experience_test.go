package metric_test

import (
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// A custom threshold applies to every stall and changes no other metric.
func TestStallThreshold(t *testing.T) {
	r := success(4, 10*ms, 40*ms, 110*ms, 211*ms)
	for threshold, want := range map[float64]float64{0: 0, 1000: 0, 100: 1, 50: 2, 10: 3, 1e300: 0} {
		sum := metric.Accumulator{Stall: threshold}
		must.Do(t, sum.Add(r))
		c := metric.DefaultConfig()
		c.StallMillis = threshold
		s := sum.Summary(c)
		if d := s.Dist(metric.Stalls); d.N != 1 || d.Stats.Mean != want {
			t.Errorf("over %v ms: %+v, want %v", threshold, d.Stats, want)
		}
		if got := s.Classic(metric.LongestGap).Mean; got != 101 {
			t.Errorf("over %v ms the longest gap is %v, want 101", threshold, got)
		}
	}
}

// The limit of a speed is a minimum; the limit of a latency is a maximum.
func TestGoodputOfSpeeds(t *testing.T) {
	for _, c := range []struct {
		slo  metric.SLO
		good float64
	}{
		{metric.SLO{Metric: "user_speed", LimitMillis: 20}, 1}, // 2 tokens in 50 ms, and in 200 ms
		{metric.SLO{Metric: "user_speed", LimitMillis: 50}, 0},
		{metric.SLO{Metric: "normalized_latency", LimitMillis: 50}, 1},
		{metric.SLO{Metric: "stalls", LimitMillis: 0}, 2},
	} {
		config := metric.Config{Goodput: []metric.SLO{c.slo}}
		must.Do(t, config.Validate())
		sum := metric.Accumulator{Goodput: config.Goodput}
		for _, last := range []time.Duration{50 * ms, 200 * ms} {
			must.Do(t, sum.Add(success(2, 10*ms, last)))
		}
		s := sum.Summary(config)
		if got := *s.Throughput.GoodPerS * s.DurationS; got != c.good {
			t.Errorf("%+v: %v good requests, want %v", c.slo, got, c.good)
		}
	}
}
