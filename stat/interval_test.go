package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tacho/stat"
)

func exponential(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r.ExpFloat64()
	}
	return out
}

// autoregressive draws a series whose neighbours resemble each other; its mean
// is 0.
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

// Values of scipy's mannwhitneyu: exact for the first two, with ties and the normal
// approximation for the last.
func TestMannWhitney(t *testing.T) {
	for _, c := range []struct {
		a, b        []float64
		superior, p float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 1, 0.1},
		{[]float64{0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}, []float64{1.15, 0.88, 0.9, 0.74, 1.21}, 0.3, 0.2544123},
		{[]float64{1, 1, 2, 2, 3, 3}, []float64{2, 3, 3, 4, 4, 5}, 31.0 / 36, 0.0393933},
	} {
		superior, p := stat.MannWhitney(stat.New(c.a), stat.New(c.b))
		if math.Abs(superior-c.superior) > 1e-9 || math.Abs(p-c.p) > 1e-4 {
			t.Errorf("%v against %v: %v, p %v; want %v, %v", c.a, c.b, superior, p, c.superior, c.p)
		}
	}
}

// Where there is no difference, p is below 5 % in 5 % of the tries; a real one
// is found, and its size.
func TestMannWhitneyLevel(t *testing.T) {
	rejected, found := 0, 0
	const tries = 1000
	for i := range tries {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		a, b := exponential(r, 40), exponential(r, 50)
		if _, p := stat.MannWhitney(stat.New(slices.Clone(a)), stat.New(slices.Clone(b))); p < 0.05 {
			rejected++
		}
		for k := range b {
			b[k] += 0.5
		}
		if _, in := stat.Shift(stat.New(a), stat.New(b), 0.95); in.Low <= 0.5 && 0.5 <= in.High {
			found++
		}
	}
	if share := float64(rejected) / tries; share < 0.03 || share > 0.07 {
		t.Errorf("rejected %.3f of equal pairs", share)
	}
	if share := float64(found) / tries; share < 0.925 || share > 0.975 {
		t.Errorf("the shift's interval held %.3f of the time", share)
	}
}
