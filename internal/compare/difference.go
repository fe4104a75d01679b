package compare

import (
	"math"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// untested returns the difference without a test.
func untested(a, b *estimated) *Delta {
	return &Delta{Difference: b.value - a.value, Share: shareOf(b.value-a.value, a.value)}
}

// betweenRuns compares the means of several runs, using the variance between runs (Welch's test). A
// single run on one side is assumed to have the variance of the other side.
func betweenRuns(a, b *estimated) *Delta {
	d := untested(a, b)
	if a.runs < 2 && b.runs < 2 {
		d.NoTest = noMethod
		return d
	}
	std, degrees := [2]float64{a.std, b.std}, [2]float64{float64(a.runs - 1), float64(b.runs - 1)}
	switch {
	case a.runs < 2:
		std[0], degrees[0] = std[1], degrees[1]
	case b.runs < 2:
		std[1], degrees[1] = std[0], degrees[0]
	}
	va, vb := std[0]*std[0]/float64(a.runs), std[1]*std[1]/float64(b.runs)
	freedom := (va + vb) * (va + vb) / (va*va/degrees[0] + vb*vb/degrees[1])
	d.test(math.Sqrt(va+vb), freedom)
	return d.possible(a, b)
}

// possible limits an interval at -100 %, because times, rates and shares are never negative.
func (d *Delta) possible(a, b *estimated) *Delta {
	if d.Low != nil && a.value >= 0 && b.value >= 0 {
		*d.Low = max(*d.Low, -a.value)
	}
	return d
}

// test adds an interval and a p-value from a standard error and its degrees of freedom.
func (d *Delta) test(se, freedom float64) {
	p := 1.0
	switch {
	case se > 0:
		half := stat.StudentQuantile(intervalLevel, freedom) * se
		low, high := d.Difference-half, d.Difference+half
		d.Low, d.High = &low, &high
		p = stat.StudentP(d.Difference/se, freedom)
	case d.Difference != 0:
		d.NoTest = noSpread
		return
	}
	d.P = &p
}

// withinRuns compares two single runs by their stretches.
func withinRuns(a, b *estimated, q metric.Quantity, x, y *single) *Delta {
	d := untested(a, b)
	if d.NoTest = x.untestable(y); d.NoTest != "" {
		return d
	}
	mx, my, most := x.meters[q.Name], y.meters[q.Name], min(x.generations(q.Metric), y.generations(q.Metric))
	if q.Metric != nil {
		d.shift = shifted(mx, my, most, x.floor(y))
	}
	if q.P > 0 {
		d.testPercentile(a.value, b.value, mx, my, most, x.floor(y))
		return d.possible(a, b)
	}
	s, why := jackknife(mx, my, most)
	if q.Name == metric.FailureShare && mx.known && my.known {
		d.test(s.se, s.freedom)
		d.testFailures(mx.tallies(), my.tallies())
		return d.possible(a, b)
	}
	if why != "" {
		d.NoTest = why
		return d
	}
	switch {
	case s.se <= noise && d.Difference == 0:
		d.test(0, 1)
	case s.se <= noise:
		d.NoTest = noSpread
	case s.logs && a.value > 0 && b.value > 0:
		d.testRatio(a.value, b.value, s.beside(x.floor(y), x.explained(y, q)))
	default:
		d.test(s.se, s.freedom)
	}
	d.combine()
	return d.possible(a, b)
}

// testRatio is test for the logarithm of a ratio, so that no interval ends below -100 %.
func (d *Delta) testRatio(from, to float64, s spread) {
	p := stat.StudentP(math.Log(to/from)/s.se, s.freedom)
	d.P = &p
	if half := s.half(); half < widest {
		low, high := to*math.Exp(-half)-from, to*math.Exp(half)-from
		d.Low, d.High = &low, &high
	}
}

// widest is the largest useful half width of an interval, as a logarithm: a tenth to ten times the
// value.
var widest = math.Log(10)

// combine also calls a mean different if its whole distribution moved. An overloaded server is slower
// in every stretch, but by amounts so different that their variance hides it. Two tests count twice.
func (d *Delta) combine() {
	if d.P == nil || d.shift == nil || d.Difference == 0 {
		return
	}
	p := min(2*min(*d.P, d.shift.p), 1)
	if d.shift.p < *d.P && d.shift.p < 1-intervalLevel && d.Low != nil && *d.Low <= 0 && *d.High >= 0 {
		d.Low, d.High = nil, nil // they belong to a test that does not detect the shift
	}
	d.P = &p
}
