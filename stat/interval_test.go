package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tacho-bench/tacho/stat"
)

func exponential(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r.ExpFloat64()
	}
	return out
}

// autoregressive draws a series with mean 0 and correlated neighbours.
func autoregressive(r *rand.Rand, n int, phi float64) []float64 {
	out := make([]float64, n)
	x := r.NormFloat64() / math.Sqrt(1-phi*phi)
	for i := range out {
		x = phi*x + r.NormFloat64()
		out[i] = x
	}
	return out
}

func TestEffectiveSize(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, phi := range []float64{0, 0.5, 0.9} {
		const n = 20_000
		want := n * (1 - phi) / (1 + phi)
		if got := stat.EffectiveSize(autoregressive(r, n, phi)); math.Abs(got/want-1) > 0.2 {
			t.Errorf("phi %v: %v of %v, want about %v", phi, got, n, want)
		}
	}
	if got := stat.EffectiveSize([]float64{3, 3, 3, 3, 3}); got != 5 {
		t.Errorf("equal observations: %v", got)
	}
}
