package metric_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// BenchmarkAccumulator measures the cost of a record of a thousand tokens, with exact values and with
// bins.
func BenchmarkAccumulator(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	tokensAt := make([]time.Duration, 1000)
	now := time.Duration(0)
	for i := range tokensAt {
		now += time.Duration(20e6 + 5e6*rng.NormFloat64())
		tokensAt[i] = now
	}
	r := success(len(tokensAt), tokensAt...)
	for name, limit := range map[string]int{"kept": 0, "binned": 1} {
		b.Run(name, func(b *testing.B) {
			sum := metric.Accumulator{Limit: limit}
			for n := 0; b.Loop(); n++ {
				if limit == 0 && n%1000 == 0 {
					sum = metric.Accumulator{}
				}
				must.Do(b, sum.Add(r))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/token")
		})
	}
}
