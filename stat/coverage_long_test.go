//go:build coverage

package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// lognormals draws independent, very skewed values.
var lognormals = process{"lognormal", func(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Exp(r.NormFloat64())
	}
	return out
}, math.Exp(0.5), func(q float64) float64 { return math.Exp(normalQuantile(q)) }}

// Intervals of 95 % contain the true value in 93 to 97 % of thousands of seeded runs, for every process.
func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		process
		sizes []int
	}{
		{exponentials, []int{20, 50, 100, 400, 1000, 5000}},
		{lognormals, []int{50, 100, 400, 1000, 5000}},
		{autoregressives(0.5), []int{100, 500, 1000, 5000}},
		{autoregressives(0.9), []int{500, 2000, 10_000}},
		{waits(0.6), []int{500, 2000, 10_000}},
		{waits(0.8), []int{2000, 10_000}},
	} {
		for _, n := range c.sizes {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				t.Parallel()
				for q, got := range intervals(c.process, n, 4000, 0.5, 0.9, 0.95, 0.99) {
					checkTally(t, c.process, n, q, got, 0.93, 0.97, 0.07)
				}
			})
		}
	}
}
