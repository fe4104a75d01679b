package publish

import (
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/tacho-bench/tacho/internal/exposition"
)

// coarse are the bounds that every page and every export contains, in seconds: ten per decade, from 0.1 ms to 800 s.
var coarse = func() (out []float64) {
	for tens := 1e-4; tens < 1e3; tens *= 10 {
		for _, step := range []float64{1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8} {
			out = append(out, rounded(tens*step, 3))
		}
	}
	return out
}()

// parts is the number of fine buckets in a coarse bucket. Coarse buckets are at most 28 % wide, so fine ones are at
// most 1.28^(1/13) - 1 = 1.9 % wide. Prometheus interpolates within a bucket, so this limits the error of a quantile.
const parts = 13

// fine are the coarse bounds with parts-1 bounds between each two.
var fine = func() (out []float64) {
	for i, low := range coarse {
		out = append(out, low)
		if i+1 == len(coarse) {
			break
		}
		for k := 1; k < parts; k++ {
			out = append(out, rounded(low*math.Pow(coarse[i+1]/low, float64(k)/parts), 5))
		}
	}
	return out
}()

// rounded returns v with n significant digits: 0.0016 instead of 0.0016000000000000001.
func rounded(v float64, n int) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	return v
}

// scale is the resolution of exponential buckets: each is 2^(2^-6) - 1 = 1.1 % wide.
const scale = 6

// A histogram counts values in explicit buckets, and in exponential ones if they are wanted.
type histogram struct {
	bounds []float64
	counts []uint64 // one more than bounds
	count  uint64
	sum    float64

	exponential *exposition.Exponential // nil if it is not wanted
}

func newHistogram(bounds []float64, exponential bool) *histogram {
	h := &histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
	if exponential {
		h.exponential = &exposition.Exponential{Scale: scale}
	}
	return h
}

func (h *histogram) add(v float64) {
	h.counts[sort.SearchFloat64s(h.bounds, v)]++
	h.count++
	h.sum += v
	switch e := h.exponential; {
	case e == nil:
	case v <= 0:
		e.Zero++
	default:
		count(e, int(math.Ceil(math.Log2(v)*(1<<scale)))-1)
	}
}

// count counts a value in bucket i.
func count(e *exposition.Exponential, i int) {
	switch {
	case len(e.Counts) == 0:
		e.Offset, e.Counts = i, make([]uint64, 1)
	case i < e.Offset:
		e.Counts = append(make([]uint64, e.Offset-i), e.Counts...)
		e.Offset = i
	case i >= e.Offset+len(e.Counts):
		e.Counts = append(e.Counts, make([]uint64, i-e.Offset-len(e.Counts)+1)...)
	}
	e.Counts[i-e.Offset]++
}

// point returns the histogram with all its bounds.
func (h *histogram) point() exposition.Point {
	return exposition.Point{Bounds: h.bounds, Counts: slices.Clone(h.counts), Count: h.count, Sum: h.sum, Exponential: h.buckets()}
}

// merged returns the histogram with the bounds for which keep is true.
func (h *histogram) merged(keep func(i int) bool) exposition.Point {
	p := exposition.Point{Count: h.count, Sum: h.sum, Exponential: h.buckets()}
	var n uint64
	for i, bound := range h.bounds {
		n += h.counts[i]
		if keep(i) {
			p.Bounds, p.Counts = append(p.Bounds, bound), append(p.Counts, n)
			n = 0
		}
	}
	p.Counts = append(p.Counts, n+h.counts[len(h.bounds)])
	return p
}

// isCoarse reports whether fine[i] is a coarse bound.
func isCoarse(i int) bool { return i%parts == 0 }

// isShown reports whether a page contains fine[i]: if it is a coarse bound, or an edge of a bucket with values. All fine
// bounds would be 900 lines.
func (h *histogram) isShown(i int) bool {
	return isCoarse(i) || h.counts[i] > 0 || h.counts[i+1] > 0
}

// buckets returns a copy of the exponential buckets.
func (h *histogram) buckets() *exposition.Exponential {
	if h.exponential == nil {
		return nil
	}
	e := *h.exponential
	e.Counts = slices.Clone(e.Counts)
	return &e
}
