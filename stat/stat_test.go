package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"

	"github.com/tacho-bench/tacho/stat"
)

func TestKnownValues(t *testing.T) {
	s := stat.New([]float64{4, 1, 3, 2})
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean", s.Mean(), 2.5},
		{"median of an removeArrivals number", s.Median(), 2.5},
		{"median of an odd number", stat.New([]float64{9, 1, 5}).Median(), 5},
		{"population std", s.Std(), math.Sqrt(1.25)}, // the sample standard deviation would be sqrt(5/3)
		{"min", s.Min(), 1},
		{"max", s.Max(), 4},
		{"below the first half of a gap", s.Quantile(0.1), 1.3},
		{"in the second half of a gap", s.Quantile(0.25), 1.75},
		{"p99", s.Quantile(0.99), 3.97},
		{"beyond 1", s.Quantile(7), 4},
		{"below 0", s.Quantile(-7), 1},
		{"no number", s.Quantile(math.NaN()), 1},
		{"one observation", stat.New([]float64{8}).Quantile(0.3), 8},
		{"std of one observation", stat.New([]float64{8}).Std(), 0},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

// numpy interpolates from the nearer end of a gap. From the other end the result would be 0.62.
func TestQuantileRoundsLikeNumpy(t *testing.T) {
	if got, want := stat.New([]float64{0.2, 0.9}).Quantile(0.6), 0.6200000000000001; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEmptyIsZero(t *testing.T) {
	for _, s := range []stat.Sample{nil, stat.New([]float64{math.NaN(), math.Inf(1), math.Inf(-1)})} {
		if got := []float64{float64(len(s)), s.Mean(), s.Median(), s.Std(), s.Quantile(0.99), s.Min(), s.Max()}; !slices.Equal(got, make([]float64, 7)) {
			t.Errorf("empty sample answers %v, want zeros", got)
		}
	}
}

func TestEnoughFor(t *testing.T) {
	for q, want := range map[float64]int{0.5: 6, 0.9: 36, 0.99: 368, 0.999: 3688, 0.01: 368, 0: 0, 1: 0, 2: 0} {
		if got := stat.MinSampleSize(q); got != want {
			t.Errorf("EnoughFor(%v) = %d, want %d", q, got, want)
		}
	}
	if got := stat.MinSampleSize(math.NaN()); got != 0 {
		t.Errorf("EnoughFor(NaN) = %d, want 0", got)
	}
}

// tame limits floats to the range that the package supports.
func tame(xs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(xs), func(x float64) bool { return math.Abs(x) > 1e150 })
}

func TestProperties(t *testing.T) {
	within := func(x, lo, hi float64) bool { return lo <= x && x <= hi } // false for NaN
	f := func(raw []float64, a, b float64, seed uint64) bool {
		s := stat.New(tame(raw))
		if len(s) == 0 {
			return true
		}
		p, q := math.Abs(math.Mod(a, 1)), math.Abs(math.Mod(b, 1))
		p, q = min(p, q), max(p, q)
		shuffled := tame(raw)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := stat.New(shuffled)
		return within(s.Mean(), s[0], s[len(s)-1]) &&
			within(s.Median(), s[0], s[len(s)-1]) &&
			within(s.Std(), 0, s[len(s)-1]-s[0]) &&
			within(s.Quantile(p), s[0], s.Quantile(q)) &&
			within(s.Quantile(q), s.Quantile(p), s[len(s)-1]) &&
			s.Quantile(0) == s[0] && s.Quantile(1) == s[len(s)-1] &&
			s.Mean() == other.Mean() && s.Std() == other.Std() && s.Quantile(p) == other.Quantile(p)
	}
	if err := quick.Check(f, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// Shifting and scaling a sample shifts and scales its statistics.
func TestFollowsShiftAndScale(t *testing.T) {
	f := func(seed uint64, n uint8) bool {
		rng := rand.New(rand.NewPCG(seed, 1))
		xs, ys := make([]float64, int(n)+1), make([]float64, int(n)+1)
		for i := range xs {
			xs[i] = float64(rng.IntN(1 << 20))
			ys[i] = 4*xs[i] + 1024 // exact in floats
		}
		x, y := stat.New(xs), stat.New(ys)
		near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*(1+math.Abs(want)) }
		q := rng.Float64()
		return near(y.Mean(), 4*x.Mean()+1024) && near(y.Median(), 4*x.Median()+1024) &&
			near(y.Std(), 4*x.Std()) && near(y.Quantile(q), 4*x.Quantile(q)+1024)
	}
	if err := quick.Check(f, &quick.Config{MaxCount: 1000}); err != nil {
		t.Error(err)
	}
}

// A plain sum of a million values is off in the twelfth digit; Mean is not.
func TestMeanOfManyKeepsItsDigits(t *testing.T) {
	xs := make([]float64, 1<<20)
	for i := range xs {
		xs[i] = 0.1 + float64(i%2)*0.2
	}
	if got := stat.New(xs).Mean(); math.Abs(got-0.2) > 1e-15 {
		t.Errorf("mean = %.20f, want 0.2", got)
	}
}

func BenchmarkQuantilesOfAMillion(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	xs := make([]float64, 1_000_000)
	for i := range xs {
		xs[i] = rng.ExpFloat64()
	}
	for b.Loop() {
		s := stat.New(slices.Clone(xs))
		_, _, _ = s.Mean(), s.Std(), s.Quantile(0.99)
	}
}
