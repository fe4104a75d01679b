package compare

import (
	"math"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// A spread is the standard error of a difference, and its degrees of freedom.
type spread struct {
	se, freedom float64
	logs        bool // of the logarithm of a ratio
}

// noise is the rounding error of a spread of 0.
const noise = 1e-12

// mostFreedom is a number of degrees of freedom that is practically infinite.
const mostFreedom = 1e4

// beside adds known variances.
func (s spread) beside(variances ...float64) spread {
	own, all := s.se*s.se, s.se*s.se
	for _, v := range variances {
		all += v
	}
	if own > 0 {
		s.freedom = min(s.freedom*all*all/(own*own), mostFreedom) // Welch and Satterthwaite
	}
	s.se = math.Sqrt(all)
	return s
}

// jackknife estimates the spread of a difference between two runs. Stretches at the same position in
// their runs form pairs: they share the start, a growing queue and, if both runs sent the same work,
// their requests. Each pair is left out in turn, and the change of the difference shows the variance
// between pairs.
func jackknife(x, y *meter, most float64) (spread, string) {
	if !x.known || !y.known {
		return spread{}, noMethod
	}
	logs := x.Name != metric.FailureShare // their interval is a difference of shares
	for i := -1; i < stretches; i++ {
		logs = logs && x.without(i) > 0 && y.without(i) > 0
	}
	difference := func(i int) float64 {
		if logs {
			return math.Log(y.without(i) / x.without(i))
		}
		return y.without(i) - x.without(i)
	}
	var pseudo [stretches]float64
	for j := range pseudo {
		pseudo[j] = stretches*difference(-1) - (stretches-1)*difference(j)
	}
	s := spreadOf(pseudo[:], most)
	s.logs = logs
	if math.IsNaN(s.se) {
		return s, noMethod
	}
	return s, ""
}

// spreadOf returns the standard error of a mean of stretches, with at most most of them independent.
// Consecutive stretches may be correlated, so pairs of neighbours are tested too, and the wider result
// counts.
func spreadOf(values []float64, most float64) spread {
	pairs := make([]float64, len(values)/2)
	for i := range pairs {
		pairs[i] = (values[2*i] + values[2*i+1]) / 2
	}
	one, two := correlated(values, most), correlated(pairs, most)
	if two.half() > one.half() {
		return two
	}
	return one
}

// half returns the half width of an interval.
func (s spread) half() float64 { return s.se * stat.StudentQuantile(intervalLevel, s.freedom) }

// correlated returns the standard error of a mean of values in order of time. If neighbours are
// correlated, the effective sample size is smaller. In few values, the correlation r appears too small,
// by (1 + 4 r) / n (Kendall).
func correlated(values []float64, most float64) spread {
	n := float64(len(values))
	mean, std := meanStd(values)
	squares, products := (n-1)*std*std, 0.0
	for i := 1; i < len(values); i++ {
		products += (values[i] - mean) * (values[i-1] - mean)
	}
	alike := 0.0
	if squares > 0 {
		alike = min(max((products/squares+1/n)/(1-4/n), 0), mostAlike)
	}
	independent := min(n*(1-alike)/(1+alike), max(most, 1))
	return spread{se: std / math.Sqrt(independent), freedom: max(independent-1, leastFreedom)}
}

const (
	mostAlike    = 0.9 // the strongest correlation that this many stretches can show
	leastFreedom = 2   // of a spread over 20 stretches, however correlated
)

// A shift is the movement of a whole distribution: the mean logarithm of the ratio of the values in
// each stretch.
type shift struct {
	ratios [stretches]float64
	most   float64 // upper bound of independent stretches
	floor  float64
	p      float64 // p-value of no shift
}

// mostShift limits the ratio of a stretch: a stretch a hundred times as slow must not hide that the
// others are slower.
const mostShift = math.Ln2

// shifted compares the logarithms of the values of two runs, stretch by stretch. It returns nil if a
// stretch has no values.
func shifted(x, y *meter, most, floor float64) *shift {
	s := &shift{most: most, floor: floor}
	for i := range s.ratios {
		if x.n[i] == 0 || y.n[i] == 0 {
			return nil
		}
		s.ratios[i] = y.logs[i]/y.n[i] - x.logs[i]/x.n[i]
	}
	_, s.p = s.from(0)
	return s
}

// from returns the distance of the values from a ratio, given as a logarithm, and its p-value.
func (s *shift) from(ratio float64) (off, p float64) {
	var by [stretches]float64
	for i, r := range s.ratios {
		by[i] = min(max(r-ratio, -mostShift), mostShift)
	}
	off, _ = meanStd(by[:])
	if off == 0 {
		return 0, 1
	}
	of := spreadOf(by[:], s.most).beside(s.floor)
	return off, stat.StudentP(off/of.se, of.freedom)
}

// explained returns the variance of a rate caused by the schedules and not by the servers. The
// schedules are known.
func (s *single) explained(o *single, q metric.Quantity) float64 {
	if _, rate := throughputs[q.Name]; !rate || !s.paced() || !o.paced() {
		return 0
	}
	perSecond := func(s *single) float64 {
		return float64(len(s.sent)-1) / max(s.sent[len(s.sent)-1]-s.sent[0], 1).Seconds()
	}
	off := math.Log(perSecond(o) / perSecond(s))
	return off * off
}
