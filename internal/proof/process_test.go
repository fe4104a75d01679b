package proof_test

import (
	"math"
	"testing"

	"github.com/tacho-bench/tacho/internal/proof"
)

// Values of P(a, x) from closed forms: P(1, x) = 1-exp(-x), P(1/2, x) =
// erf(sqrt x), and P(2, x) = 1-(1+x)exp(-x).
func TestGammaCDF(t *testing.T) {
	for _, x := range []float64{0.01, 0.5, 1, 2, 7, 30} {
		for _, c := range []struct{ shape, want float64 }{
			{1, 1 - math.Exp(-x)},
			{0.5, math.Erf(math.Sqrt(x / 2))},
			{2, 1 - (1+2*x)*math.Exp(-2*x)},
		} {
			if got := proof.GammaCDF(c.shape, x); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("GammaCDF(%v, %v) = %v, want %v", c.shape, x, got, c.want)
			}
		}
	}
}

func TestKolmogorovSmirnov(t *testing.T) {
	uniform := func(x float64) float64 { return min(max(x, 0), 1) }
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{[]float64{0.5}, 0.5},
		{[]float64{0.75, 0.25}, 0.25},
		{[]float64{0, 0, 0, 0}, 1},
		{[]float64{0.1, 0.2}, 0.8},
	} {
		if got := proof.KolmogorovSmirnov(c.xs, uniform); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.xs, got, c.want)
		}
	}
}

func TestDispersion(t *testing.T) {
	clock := make([]float64, 1000)
	for i := range clock {
		clock[i] = float64(i) + 0.5
	}
	if got := proof.Dispersion(clock, 10); got > 1e-12 {
		t.Errorf("a clock: %v, want 0", got)
	}
	// Windows alternate between 0 and 4 points: mean 2, variance 4 (n/(n-1)).
	var pairs []float64
	for i := range 100 {
		for range 4 {
			pairs = append(pairs, float64(2*i)+0.5)
		}
	}
	pairs = append(pairs, 200)
	if got, want := proof.Dispersion(pairs, 1), 4.0*200/199/2; math.Abs(got-want) > 1e-9 {
		t.Errorf("alternating: %v, want %v", got, want)
	}
	if got := proof.Dispersion([]float64{1}, 10); !math.IsNaN(got) {
		t.Errorf("one window: %v, want NaN", got)
	}
}
