package stat_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/stat"
)

// latencies draws values like the latencies of a server: two modes, a long tail and some zeros, in milliseconds of
// whole nanoseconds.
func latencies(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		ms := 20 + 5*r.NormFloat64()
		if r.IntN(10) == 0 {
			ms = 200 * math.Exp(r.NormFloat64())
		}
		if r.IntN(1000) == 0 {
			ms = 0
		}
		out[i] = float64(int64(ms*1e6)) / 1e6
	}
	return out
}

var quantiles = []float64{0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1}

func TestDigestExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	xs := append(latencies(r, 10_000), 1e12/3, -7, math.Copysign(0, -1), 1e-9, math.NaN(), math.Inf(1))
	var d stat.Digest
	for _, x := range xs {
		d.Add(x)
	}
	got, want := d.Distribution(), stat.New(xs)
	if !d.Exact() || d.N() != len(want) || got.Mean() != want.Mean() || got.Std() != want.Std() || got.Median() != want.Median() {
		t.Errorf("%d, mean %v, std %v, median %v; want %d, %v, %v, %v", d.N(), got.Mean(), got.Std(), got.Median(), len(want), want.Mean(), want.Std(), want.Median())
	}
	for _, q := range quantiles {
		if got.Quantile(q) != want.Quantile(q) {
			t.Errorf("quantile %v: %v, want %v", q, got.Quantile(q), want.Quantile(q))
		}
	}
}

// Above the limit, quantiles are within SketchError and all other statistics are exact.
func TestDigestSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, xs := range map[string][]float64{
		"latencies": latencies(r, 200_000), "equal": make([]float64, 5000), "negative": {-1, -2, -3, -1000, 5, 0, 0, 1e-300, 1e300},
	} {
		d := stat.Digest{Limit: 3}
		for _, x := range xs {
			d.Add(x)
		}
		got, want := d.Distribution(), stat.New(xs)
		if d.Exact() {
			t.Fatalf("%s: exact past its limit", name)
		}
		if got.Min() != want.Min() || got.Max() != want.Max() || d.N() != len(want) {
			t.Errorf("%s: %d from %v to %v", name, d.N(), got.Min(), got.Max())
		}
		for _, q := range quantiles {
			if g, w := got.Quantile(q), want.Quantile(q); math.Abs(g-w) > stat.SketchError*max(math.Abs(w), gapAt(want, q)) {
				t.Errorf("%s: quantile %v: %v, want %v", name, q, g, w)
			}
		}
		if name != "latencies" {
			continue
		}
		if math.Abs(got.Mean()-want.Mean()) > 1e-6 {
			t.Errorf("mean %v, want %v", got.Mean(), want.Mean())
		}
		if math.Abs(got.Std()-want.Std()) > stat.SketchError*want.Std() {
			t.Errorf("std %v, want %v", got.Std(), want.Std())
		}
	}
}

// gapAt returns the distance between the neighbours of a quantile, which is interpolated between them. Both
// neighbours may be off.
func gapAt(s stat.Sample, q float64) float64 {
	i := int(float64(len(s)-1) * q)
	return max(math.Abs(s[i]), math.Abs(s[min(i+1, len(s)-1)]))
}

// However observations are split and merged, all results are equal to the last bit, below and above the limit.
func TestDigestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 99, 100, 101, 5000} {
		xs := latencies(r, n)
		whole := stat.Digest{Limit: 100}
		parts := make([]stat.Digest, 7)
		for i := range parts {
			parts[i].Limit = 100
		}
		for _, x := range xs {
			whole.Add(x)
			parts[r.IntN(7)].Add(x)
		}
		merged := stat.Digest{Limit: 100}
		for _, i := range r.Perm(7) {
			merged.Merge(&parts[i])
		}
		a, b := whole.Distribution(), merged.Distribution()
		if whole.N() != merged.N() || whole.Exact() != merged.Exact() || a.Mean() != b.Mean() || a.Std() != b.Std() {
			t.Errorf("%d observations: mean %v and %v, std %v and %v", n, a.Mean(), b.Mean(), a.Std(), b.Std())
		}
		for _, q := range quantiles {
			if a.Quantile(q) != b.Quantile(q) {
				t.Errorf("%d observations, quantile %v: %v and %v", n, q, a.Quantile(q), b.Quantile(q))
			}
		}
	}
}

// Ten million observations above the limit use no more memory than the first million.
func TestDigestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("ten million observations")
	}
	r := rand.New(rand.NewPCG(7, 8))
	d := stat.Digest{Limit: 100_000}
	some := latencies(r, 1<<16)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill := func(n int) {
		for i := range n {
			d.Add(some[i%len(some)])
		}
	}
	fill(200_000)
	before := heap()
	fill(10_000_000)
	after := heap()
	if after > before+1<<20 {
		t.Errorf("%d bytes more after ten million observations", after-before)
	}
	runtime.KeepAlive(&d)
}

// AddBatch gives the same digests and series as adding one by one.
func TestBatchesAreTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, limit := range []int{10, 5000} {
		one, all := &stat.Digest{Limit: limit}, &stat.Digest{Limit: limit}
		var single, series stat.Series
		var b stat.Batch
		for range 100 {
			at := time.Duration(rng.Int64N(1e12))
			b.Values = b.Values[:0]
			for range rng.IntN(40) {
				b.Values = append(b.Values, []float64{0, math.NaN(), math.Inf(1), 1e-300, 1e300, -3, rng.NormFloat64(), rng.ExpFloat64() * 1e3, float64(rng.IntN(9000)) / 1e3}[rng.IntN(9)])
			}
			b.Ready()
			one.Add(b.Values...)
			all.AddBatch(&b)
			single.Add(at, b.Values...)
			series.AddBatch(at, &b)
		}
		a, o := all.Distribution(), one.Distribution()
		for q := 0.0; q <= 1; q += 0.01 {
			if a.Quantile(q) != o.Quantile(q) {
				t.Errorf("limit %d: quantile %g is %g, want %g", limit, q, a.Quantile(q), o.Quantile(q))
			}
		}
		if all.N() != one.N() || all.Exact() != one.Exact() || a.Mean() != o.Mean() || a.Min() != o.Min() || a.Max() != o.Max() || a.Std() != o.Std() {
			t.Errorf("limit %d: %d values, mean %g, %g to %g, want %d, %g, %g to %g", limit, all.N(), a.Mean(), a.Min(), a.Max(), one.N(), o.Mean(), o.Min(), o.Max())
		}
		if !reflect.DeepEqual(series, single) {
			t.Errorf("limit %d: the series differ", limit)
		}
	}
}
