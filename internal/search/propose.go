package search

import (
	"math"
	"slices"
)

// propose returns a load inside the bracket, or its low end if the bracket is narrow
// enough. In a wide bracket it is the estimated limit. In a narrow one it is a load just
// below the estimate, and then a load just above it. near reports a narrow bracket.
func (s *Search) propose(low, high float64) (load float64, near bool) {
	ratio, best := high/low, s.estimate(low, high)
	below, above := 1+belowMargin*s.Within, 1+aboveMargin*s.Within
	switch {
	case ratio <= 1+s.Within:
		return low, true
	case ratio > wideBracket:
		margin := math.Pow(ratio, wideBracketMargin)
		return min(max(best, low*margin), high/margin), false
	case best > low*below*below:
		return min(best/below, high/below), true
	}
	return min(max(best, low)*above, high/below), true
}

// estimate returns the limit inside the bracket by the fit to all probes. If the fit has
// no answer there, it interpolates the values of the goals at both ends on logarithmic
// axes. If the last probes were all on one side, it is the geometric mean of the ends.
func (s *Search) estimate(low, high float64) float64 {
	if best := s.fit(s.samples()); best.goal >= 0 && best.load > low && best.load < high && !s.oneSided() {
		return best.load
	}
	best := math.Inf(1)
	for i := range s.Goals {
		a, b := s.meanPressure(i, low), s.meanPressure(i, high)
		if a > 0 && a < 1 && b > 1 && !math.IsInf(b, 0) {
			best = min(best, low*math.Pow(high/low, math.Log(a)/math.Log(a/b)))
		}
	}
	if math.IsInf(best, 0) || s.oneSided() {
		return math.Sqrt(low * high)
	}
	return best
}

// oneSided reports whether the last probes but scouts were all on one side of the limit.
func (s *Search) oneSided() bool {
	missed, n := 0.0, 0
	for _, r := range slices.Backward(s.Results) {
		if r.usable() && !r.Effort.Scout && n < oneSidedProbes {
			missed += indicator(s.missed(r))
			n++
		}
	}
	return n == oneSidedProbes && (missed == 0 || missed == oneSidedProbes)
}

// meanPressure returns the geometric mean of the pressure of a goal at a load; 0 if it is
// unknown.
func (s *Search) meanPressure(goal int, load float64) float64 {
	sum, n := 0.0, 0.0
	for _, r := range s.Results {
		if e := r.Goals[goal]; r.usable() && r.Load == load && e.Pressure > 0 {
			sum, n = sum+e.Count*math.Log(e.Pressure), n+e.Count
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / n)
}
