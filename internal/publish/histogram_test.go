package publish

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// There are ten coarse buckets per decade, each at most 30 % wider than the one below. Fine ones are at most 2 % wide.
func TestBounds(t *testing.T) {
	if n := len(coarse); n != 70 || coarse[0] != 1e-4 || coarse[10] != 1e-3 || coarse[n-1] != 800 {
		t.Errorf("%d bounds: %v", n, coarse)
	}
	widest := func(bounds []float64) (widest float64) {
		for i := 1; i < len(bounds); i++ {
			widest = max(widest, bounds[i]/bounds[i-1])
		}
		return widest
	}
	if w := widest(coarse); w > 1.3 {
		t.Error(w)
	}
	if w := widest(fine); w > 1.02 {
		t.Error(w)
	}
	for i, bound := range fine {
		if isCoarse(i) && bound != coarse[i/parts] {
			t.Errorf("fine bound %d is %g", i, bound)
		}
	}
}

// classicQuantile is Prometheus' histogram_quantile for ordinary buckets: it interpolates linearly within a bucket.
func classicQuantile(q float64, p *exposition.Point) float64 {
	rank, below := q*float64(p.Count), 0.0
	for i, n := range p.Counts {
		if below+float64(n) < rank {
			below += float64(n)
			continue
		}
		low := 0.0
		if i > 0 {
			low = p.Bounds[i-1]
		}
		return low + (p.Bounds[i]-low)*(rank-below)/float64(n)
	}
	return math.NaN()
}

// nativeQuantile is histogram_quantile for native buckets: it interpolates exponentially within a bucket.
func nativeQuantile(q float64, e *exposition.Exponential, count uint64) float64 {
	rank, below := q*float64(count)-float64(e.Zero), 0.0
	for i, n := range e.Counts {
		if below+float64(n) < rank {
			below += float64(n)
			continue
		}
		return math.Exp2((float64(e.Offset+i) + (rank-below)/float64(n)) / math.Exp2(float64(e.Scale)))
	}
	return math.NaN()
}

// histogram_quantile returns the p99, and other quantiles, within 2 % of the exact value, for smooth, narrow and split
// distributions.
func TestQuantileOfPrometheus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, of := range map[string]func() float64{
		"log-normal":       func() float64 { return 0.2 * math.Exp(0.8*r.NormFloat64()) },
		"exponential":      func() float64 { return 0.03 * r.ExpFloat64() },
		"uniform":          func() float64 { return 0.01 + 0.09*r.Float64() },
		"constant":         func() float64 { return 0.01 },
		"almost constant":  func() float64 { return 0.0412 * (1 + 0.001*r.NormFloat64()) },
		"two modes":        func() float64 { return []float64{0.025, 1.9}[r.IntN(2)] * (1 + 0.02*r.NormFloat64()) },
		"rare slow values": func() float64 { return []float64{0.04, 3.7}[max(0, r.IntN(90)-88)] * (1 + 0.01*r.NormFloat64()) },
		"sub-millisecond":  func() float64 { return 0.0003 * math.Exp(0.3*r.NormFloat64()) },
		"minutes":          func() float64 { return 200 * math.Exp(0.4*r.NormFloat64()) },
	} {
		h := newHistogram(fine, true)
		var all []float64
		for range 20_000 {
			v := of()
			all = append(all, v)
			h.add(v)
		}
		slices.Sort(all)
		page := h.merged(h.isShown)
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			exact := all[int(math.Ceil(q*float64(len(all))))-1]
			for kind, got := range map[string]float64{"classic": classicQuantile(q, &page), "native": nativeQuantile(q, page.Exponential, page.Count)} {
				if off := math.Abs(got/exact - 1); !(off <= 0.02) {
					t.Errorf("%s: %s p%g is %g instead of %g: %.1f %% off", name, kind, q*100, got, exact, off*100)
				}
			}
		}
		if len(page.Bounds) > 500 {
			t.Errorf("%s: %d bounds", name, len(page.Bounds))
		}
	}
}

// merged and exponential buckets lose no value.
func TestBucketsAddUp(t *testing.T) {
	h := newHistogram(fine, true)
	values := []float64{0, 5e-5, 1e-4, 0.05, 0.05, 799, 900, 1e-9}
	for _, v := range values {
		h.add(v)
	}
	for name, p := range map[string]exposition.Point{"shown": h.merged(h.isShown), "coarse": h.merged(isCoarse), "all": h.point()} {
		var n uint64
		for _, c := range p.Counts {
			n += c
		}
		e := p.Exponential.Zero
		for _, c := range p.Exponential.Counts {
			e += c
		}
		if got := fmt.Sprint(n, e, len(p.Counts)-len(p.Bounds)); got != fmt.Sprint(len(values), len(values), 1) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
