package pace_test

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/proof"
	"github.com/tacho-bench/tacho/pace"
)

func take(s iter.Seq[time.Duration], n int) (out []time.Duration) {
	for d := range s {
		if out = append(out, d); len(out) == n {
			break
		}
	}
	return out
}

func secs(ds []time.Duration) []float64 {
	out := make([]float64, len(ds))
	for i, d := range ds {
		out[i] = d.Seconds()
	}
	return out
}

// The stripes of a schedule partition it.
func TestStripesPartition(t *testing.T) {
	f := func(seed uint64, n8 uint8) bool {
		n := uint64(n8%7) + 1
		whole := slices.Collect(pace.Poisson{Rate: 50, Seed: seed, Count: 200}.Arrivals())
		merged := make([]time.Duration, len(whole))
		count := 0
		for k := range n {
			for i, at := range pace.Stripe(slices.Values(whole), k, n) {
				merged[i] = at
				count++
			}
		}
		return count == len(whole) && slices.Equal(whole, merged) && slices.IsSorted(whole)
	}
	must.Do(t, quick.Check(f, nil))
}

func TestConstantDoesNotDrift(t *testing.T) {
	got := take(pace.Constant{Rate: 3}.Arrivals(), 300_000)
	if want := 100_000 * time.Second; got[299_999] != want {
		t.Errorf("arrival 300000 of 3/s = %v, want %v", got[299_999], want)
	}
}

// New returns the process selected by the flags.
func TestChoice(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		o    pace.Options
		want string
	}{
		{pace.Options{Rate: inf, Shape: 1}, "burst"},
		{pace.Options{Rate: inf, Shape: 1, Limited: true}, "closed"},
		{pace.Options{Rate: 5, Shape: 1, Limited: true}, "poisson"},
		{pace.Options{Rate: 5, Shape: 1}, "poisson"},
		{pace.Options{Rate: 5, Shape: 0.5}, "gamma"},
		{pace.Options{Rate: 5, Shape: inf}, "constant"},
		{pace.Options{Rate: inf, Shape: 1, Ramp: "linear", RampStart: 1, RampEnd: 2, Count: 3}, "linear"},
		{pace.Options{Rate: inf, Shape: 1, Ramp: "exponential", RampStart: 1, RampEnd: 2, Count: 3}, "exponential"},
	} {
		_, k, err := pace.New(c.o)
		if err != nil || k.Name != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.o, k.Name, err, c.want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]pace.Options{
		"must be above 0":                {Rate: 0, Shape: 1},
		"burstiness":                     {Rate: 1, Shape: math.NaN()},
		"unknown ramp-up":                {Rate: 1, Shape: 1, Ramp: "cubic"},
		"must not be above its end rate": {Rate: 1, Shape: 1, Ramp: "linear", RampStart: 3, RampEnd: 2, Count: 9},
		"start rate above 0":             {Rate: 1, Shape: 1, Ramp: "exponential", RampEnd: 2, Count: 9},
		"set --num-prompts":              {Rate: 1, Shape: 1, Ramp: "linear", RampEnd: 2},
		"at least 0":                     {Rate: 1, Shape: 1, Ramp: "linear", RampStart: -1, RampEnd: 2, Count: 9},
		"end rate above 0":               {Rate: 1, Shape: 1, Ramp: "linear", Count: 9},
		"request rate NaN":               {Rate: math.NaN(), Shape: 1},
		"burstiness -1 must ":            {Rate: 2, Shape: -1},
	} {
		if _, _, err := pace.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// Each schedule follows its process at every rate: mean gap, coefficient of variation, index of dispersion and the
// distribution of the gaps. Seeds are fixed; a wrong process misses the margins by far.
func TestProcess(t *testing.T) {
	const n = 20_000
	for _, rate := range []float64{1, 7.5, 100, 2000, 5000} {
		for _, shape := range []float64{0.3, 1, 4, math.Inf(1)} {
			t.Run(fmt.Sprintf("rate=%v/burstiness=%v", rate, shape), func(t *testing.T) {
				p, _, err := pace.New(pace.Options{Rate: rate, Shape: shape, Count: n, Seed: 11})
				must.Do(t, err)
				times := secs(slices.Collect(p.Arrivals()))
				checkProcess(t, times, rate, shape, n)
			})
		}
	}
}

func checkProcess(t *testing.T, times []float64, rate, shape float64, n int) {
	t.Helper()
	if len(times) != n || !slices.IsSorted(times) {
		t.Fatalf("%d arrivals, sorted %v", len(times), slices.IsSorted(times))
	}
	if got, want := times[n-1], float64(n)/rate; math.Abs(got-want) > 1e-6*want {
		t.Errorf("last arrival at %v, want %v", got, want)
	}
	gaps := proof.Gaps(times)
	mean, ss := 1/rate, 0.0
	for i, g := range gaps {
		gaps[i] = g / mean
		ss += (gaps[i] - 1) * (gaps[i] - 1)
	}
	wantCV := 1 / math.Sqrt(shape)
	if cv := math.Sqrt(ss / float64(n)); math.Abs(cv-wantCV) > 0.04*wantCV+1e-3 {
		t.Errorf("coefficient of variation %.4f, want %.4f", cv, wantCV)
	}
	if d := proof.Dispersion(times, 50/rate); math.Abs(d-wantCV*wantCV) > 0.2*wantCV*wantCV+0.02 {
		t.Errorf("index of dispersion %.3f, want %.3f", d, wantCV*wantCV)
	}
	if math.IsInf(shape, 1) {
		for _, g := range gaps {
			if math.Abs(g-1) > 1e-4 {
				t.Fatalf("a gap of %v", g)
			}
		}
		return
	}
	ks := proof.KolmogorovSmirnov(gaps, func(x float64) float64 { return proof.GammaCDF(shape, x) })
	// Times are integer nanoseconds, so gaps below 1 ns are indistinguishable.
	if limit := 1.95/math.Sqrt(float64(n)) + proof.GammaCDF(shape, rate*1e-9); ks > limit {
		t.Errorf("Kolmogorov-Smirnov distance %.5f, above %.5f", ks, limit)
	}
}

// A schedule without an end is not stretched and still keeps its rate.
func TestEndless(t *testing.T) {
	p, _, err := pace.New(pace.Options{Rate: 10, Shape: 1, Seed: 3})
	must.Do(t, err)
	got := take(p.Arrivals(), 50_000)
	if last := got[len(got)-1].Seconds(); math.Abs(last-5000) > 5000*0.02 {
		t.Errorf("arrival 50000 of 10/s at %v s", last)
	}
}

// The rates of a ramp match the reference: start + (end-start)*i/(N-1), and start * (end/start)^(i/(N-1)).
func TestRampRates(t *testing.T) {
	for _, c := range []struct {
		ramp       string
		start, end float64
		want       []float64
	}{
		{"linear", 1, 5, []float64{1, 2, 3, 4, 5}},
		{"linear", 0, 4, []float64{1, 1, 2, 3, 4}},
		{"exponential", 1, 16, []float64{1, 2, 4, 8, 16}},
	} {
		p, _, err := pace.New(pace.Options{
			Rate: math.Inf(1), Shape: math.Inf(1), Ramp: c.ramp, RampStart: c.start, RampEnd: c.end, Count: 5,
		})
		must.Do(t, err)
		gaps := proof.Gaps(secs(slices.Collect(p.Arrivals())))
		for i, g := range gaps {
			if math.Abs(1/g-c.want[i]) > 1e-6 {
				t.Errorf("%s %v-%v: rate before arrival %d is %v, want %v", c.ramp, c.start, c.end, i, 1/g, c.want[i])
			}
		}
	}
}

func TestClosedAndBurst(t *testing.T) {
	if got := slices.Collect(pace.Closed{Count: 2}.Arrivals()); !slices.Equal(got, []time.Duration{tacho.ASAP, tacho.ASAP}) {
		t.Errorf("closed: %v", got)
	}
	if got := slices.Collect(pace.Burst{Count: 3}.Arrivals()); !slices.Equal(got, []time.Duration{0, 0, 0}) {
		t.Errorf("burst: %v", got)
	}
}

// A schedule with Within contains exactly Count arrivals before its end, for every seed, and follows the process
// conditioned on Count.
func TestWithin(t *testing.T) {
	for _, shape := range []float64{0.3, 1, 4, math.Inf(1)} {
		for seed := range uint64(200) {
			p, _, err := pace.New(pace.Options{Rate: 10, Shape: shape, Count: 120, Within: 12, Seed: seed})
			must.Do(t, err)
			times := slices.Collect(p.Arrivals())
			if len(times) != 120 || !slices.IsSorted(times) || times[0] <= 0 || times[119] >= 12*time.Second {
				t.Fatalf("burstiness %v, seed %d: %d arrivals from %v to %v", shape, seed, len(times), times[0], times[len(times)-1])
			}
		}
	}
	// Conditioned on the count, each arrival of a Poisson process is uniform: over many seeds, the first and the
	// middle arrival follow the distributions of their order statistics.
	var first, middle []float64
	for seed := range uint64(4000) {
		times := secs(slices.Collect(pace.Poisson{Rate: 3, Count: 9, Within: 3, Seed: seed}.Arrivals()))
		first, middle = append(first, times[0]/3), append(middle, times[4]/3)
	}
	limit := 1.95 / math.Sqrt(4000)
	if ks := proof.KolmogorovSmirnov(first, func(x float64) float64 { return 1 - math.Pow(1-x, 9) }); ks > limit {
		t.Errorf("the first of 9 uniform times: distance %.4f, above %.4f", ks, limit)
	}
	atLeast5 := func(x float64) (p float64) { // probability that at least 5 of 9 uniform numbers are below x
		choose := []float64{126, 84, 36, 9, 1}
		for i, c := range choose {
			p += c * math.Pow(x, float64(5+i)) * math.Pow(1-x, float64(4-i))
		}
		return p
	}
	if ks := proof.KolmogorovSmirnov(middle, atLeast5); ks > limit {
		t.Errorf("the middle of 9 uniform times: distance %.4f, above %.4f", ks, limit)
	}
	// Gamma gaps keep their coefficient of variation.
	for _, shape := range []float64{0.3, 4} {
		gaps := proof.Gaps(secs(slices.Collect(pace.Gamma{Rate: 100, Shape: shape, Count: 20_000, Within: 200, Seed: 5}.Arrivals())))
		ss := 0.0
		for _, g := range gaps {
			ss += (100*g - 1) * (100*g - 1)
		}
		if cv, want := math.Sqrt(ss/20_000), 1/math.Sqrt(shape); math.Abs(cv-want) > 0.04*want {
			t.Errorf("burstiness %v: coefficient of variation %.4f, want %.4f", shape, cv, want)
		}
	}
}
