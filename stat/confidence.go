package stat

import (
	"math"
	"time"
)

// An Interval is a 95 % confidence interval of a statistic of a Series. If there is a warning, Low and High are
// infinite, because the observations are not sufficient.
type Interval struct {
	Low, High float64
	Effective float64 // effective sample size
	Warning   Warning // empty if there is none
}

// unbounded returns an interval without ends, and the reason.
func unbounded(effective float64, why Warning) Interval {
	return Interval{math.Inf(-1), math.Inf(1), effective, why}
}

const (
	minBins    = 12  // observations, and time bins with observations; with fewer time bins, all requests came in one burst
	minForMean = 10  // effective sample size for a mean
	minTail    = 3.7 // effective observations beyond a quantile; with fewer, all fall short of the quantile in one of 40 runs

	// maxTailFactor limits how much larger minTail gets if neighbours are correlated. Rare values then come in
	// clusters, and there are few clusters to learn from.
	maxTailFactor = 2.7
	// clearlyCorrelated is the number of observations per effective observation above which random variation does not
	// explain the correlation.
	clearlyCorrelated = 1.3
	// maxEffectiveShare limits the effective sample size, as a multiple of the number of observations, if negatively
	// correlated observations balance each other out. A higher estimate is random variation.
	maxEffectiveShare = 1.5
)

// Intervals computes the confidence intervals of a Series.
type Intervals struct {
	Mean   Interval
	series *Series
	load   load
	below  *cumulation
	values Distribution
	std    float64
}

// Intervals returns the confidence intervals of the series. d is the distribution of the same observations. If
// requests are sent at a rate, their total number is fixed, and paced has one observation for each request. paced is
// nil if the number of requests is random.
func (s *Series) Intervals(d Distribution, paced *Series) Intervals {
	return s.intervals(d, load{paced: paced, fixed: 1, unit: 1, most: maxWaves})
}

// A load describes the requests behind the observations of a series.
type load struct {
	paced *Series // one observation for each request if the number of requests is fixed, else nil
	fixed float64 // the part of the fixed number that is in paced
	unit  float64 // observations per request
	most  int     // waves slower than the time in which requests influence each other
	long  bool    // the window is long compared with that time, so a small effective sample size is acceptable

	memories float64 // length of the window in times after which the queue has forgotten its length
}

func (s *Series) intervals(d Distribution, l load) Intervals {
	if l.paced != nil && l.paced.shift != s.shift {
		l.paced = nil // paced has other time bins
	}
	out := Intervals{series: s, load: l, below: s.cumulate(), values: d, std: d.Std()}
	out.Mean = s.mean(d.Mean(), out.std, l)
	return out
}

// mean uses the cosine estimator of the variance of a mean (equally weighted, with quantiles of Student's
// distribution), which needs no model of the correlation, and Hall's correction for skewness.
func (s *Series) mean(mean, std float64, l load) Interval {
	n := float64(s.N())
	switch {
	case n < minBins:
		return unbounded(n, TooFew)
	case std == 0:
		return Interval{mean, mean, n, ""}
	case s.effectiveBins() < minBins:
		return unbounded(s.effectiveBins(), Burst)
	}
	var off [seriesBins]float64 // deviations from the mean, summed over each time bin
	for i := range off {
		off[i] = s.sums[i].float() - mean*float64(s.n[i])
	}
	skew := s.skewness(&off)
	effective, waves := s.effectiveSize(&off, std*std, l)
	if effective < minForMean && !l.long {
		return unbounded(effective, Correlated)
	}
	t, scale := student975(waves), std/math.Sqrt(effective)
	return Interval{mean - scale*hall(t, skew), mean - scale*hall(-t, skew), min(effective, n), ""}
}

// Quantile returns the interval of the quantile q, between two order statistics. The order statistics are chosen as
// for independent observations, but with the effective sample size. This size follows from how the share of
// observations below the quantile varies over time.
func (s *Intervals) Quantile(q float64) Interval {
	if s.std == 0 || s.Mean.Warning == Burst || s.Mean.Warning == TooFew {
		return s.Mean
	}
	n, tail, e := float64(s.series.N()), min(q, 1-q), s.exceed(q)
	alike := max(n/max(s.Mean.Effective, 1), 1)
	enough := s.Mean.Effective*tail >= minTail*min(alike, maxTailFactor)
	if s.load.long {
		alike, enough = max(n/max(e.effective, 1), 1), s.load.memories*tail >= 1
	}
	out := unbounded(min(e.effective, n), "")
	if !enough || e.effective*tail < minTail {
		if out.Warning = TooFew; n*tail >= minTail { // as many independent observations would be enough
			out.Warning, out.Effective = Correlated, min(out.Effective, s.Mean.Effective)
		}
		return out
	}
	low, high := e.ranks(n, q, alike)
	if low < 0 || high > 1 {
		out.Warning = TooFew
		return out
	}
	return Interval{s.values.Quantile(low), s.values.Quantile(high), out.Effective, ""}
}

// An excess describes how the share of observations below a quantile varies.
type excess struct {
	effective, skewness float64
	waves               int
}

// exceed returns the excess of the quantile q. If all observations have the same size class, exceed uses the
// effective sample size of the mean.
func (s *Intervals) exceed(q float64) excess {
	if !s.below.to(q) {
		return excess{s.Mean.Effective, 0, waveCounts[0].waves}
	}
	share := s.below.taken / s.below.all
	off := s.below.counts
	for i := range off {
		off[i] -= share * float64(s.series.n[i])
	}
	if s.load.long {
		return excess{min(s.series.geyer(&off, share*(1-share), s.load), s.below.all), s.series.skewness(&off), 0}
	}
	effective, waves := s.series.effectiveSize(&off, share*(1-share), s.load)
	return excess{min(effective, maxEffectiveShare*s.below.all), s.series.skewness(&off), waves}
}

// geyer estimates the effective sample size of a share from the deviations of indicators with the given variance.
func (s *Series) geyer(off *[seriesBins]float64, variance float64, l load) float64 {
	if l.paced != nil {
		l.paced.removeArrivals(off, l.fixed)
	}
	used, squares := s.used(), 0.0
	for _, x := range off[:used] {
		squares += x * x
	}
	n := float64(s.N())
	return n * n * variance / max(squares*correlations(off[:used]), math.SmallestNonzeroFloat64)
}

// SlowVariance returns the part of the variance in a time window that neighbouring time bins share.
func (s *Series) SlowVariance(from, to time.Duration) float64 {
	part := s.between(from, to)
	n, sum := float64(part.N()), fixed{}
	for i := range part.sums {
		sum.merge(&part.sums[i])
	}
	both, pairs, before := 0.0, 0.0, 0.0
	for i := range part.used() {
		off := part.sums[i].float() - sum.float()/max(n, 1)*float64(part.n[i])
		if i > 0 {
			both, pairs = both+before*off, pairs+float64(part.n[i-1])*float64(part.n[i])
		}
		before = off
	}
	return max(both/max(pairs, 1), 0)
}

// ranks returns the order statistics around the quantile q of n observations, as quantiles. alike is the number of
// observations per effective observation.
func (e excess) ranks(n, q, alike float64) (low, high float64) {
	// The variance was estimated from a part of a known whole. The correction is a smaller effective sample size.
	m := e.effective
	if waves := float64(e.waves); waves > 0 {
		t := student975(waves * (n - 1) / max(n-1-waves, 1))
		m *= (Normal975 / t) * (Normal975 / t)
	}
	deviation := math.Sqrt(m * q * (1 - q))
	middle, half := m*q+(Normal975*Normal975-1)*(1-2*q)/6+0.5, Normal975*deviation // center and half width of a skewed binomial distribution
	if alike > clearlyCorrelated {
		// Clusters of rare values increase the skewness further and make the variance harder to estimate.
		middle -= (2*Normal975*Normal975 + 1) / 6 * (e.skewness - (1-2*q)/math.Sqrt(e.effective*q*(1-q))) * deviation
		half *= 1.05
	}
	rank := func(of float64) float64 { return (of/(m+1)*(n+1) - 1) / (n - 1) }
	return min(rank(middle-half), q), max(rank(middle+half), q)
}

// effectiveBins returns the number of time bins with observations, weighted by their counts (Kish's effective sample
// size).
func (s *Series) effectiveBins() float64 {
	sum, squares := 0.0, 0.0
	for _, n := range s.n {
		sum, squares = sum+float64(n), squares+float64(n)*float64(n)
	}
	if sum == 0 {
		return 0
	}
	return sum * sum / squares
}

// waveCounts choose the number of slow waves (cosine components of the deviations: half a period in the whole time,
// two halves, three and so on). The slowest waves show the variance of a mean. If the effective sample size is small,
// fast waves tell nothing about the variance and are left out.
var waveCounts = []struct {
	waves int
	from  float64 // effective sample size
}{{8, 0}, {12, 80}, {16, 110}, {maxWaves, 150}}

const maxWaves = 24

// effectiveSize estimates the effective sample size for a mean from the deviations of observations with the given
// variance. It also returns the degrees of freedom of the estimate.
func (s *Series) effectiveSize(off *[seriesBins]float64, variance float64, l load) (effective float64, freedom int) {
	n, first := float64(s.N()), 0.0
	if l.paced != nil {
		l.paced.removeArrivals(off, l.fixed)
	}
	power := s.power(off)
	for _, c := range waveCounts {
		waves := min(c.waves, l.most)
		free := waves
		if l.paced != nil {
			free-- // removeArrivals uses one degree of freedom
		}
		mean := max(power[waves-1]/float64(free), math.SmallestNonzeroFloat64)
		now := n * n * variance / (2 * mean)
		if c.from == 0 {
			first = now
		}
		few := 2*float64(waves) <= n/l.unit && first >= 0.7*n // nearly independent observations
		if first/l.unit >= c.from || few {
			effective, freedom = now, free
		}
	}
	return effective, freedom
}

// power returns the cumulative power of the deviations, up to each wave.
func (s *Series) power(off *[seriesBins]float64) (power [maxWaves]float64) {
	sum := 0.0
	for j, wave := range wavesOf(off[:s.used()]) {
		sum += wave * wave
		power[j] = sum
	}
	return power
}

// removeArrivals removes the part of the deviations that follows the number of requests in each time bin. s has one
// observation for each request. The total number of requests is fixed, so more requests in one time bin mean fewer in
// others, and the mean does not change. If only a share of the fixed number is in s, the other requests absorb some
// of the variation: the variance of the number in s is 1 - share of the variance of a random number.
func (s *Series) removeArrivals(off *[seriesBins]float64, share float64) {
	used := s.used()
	requests := make([]float64, used)
	for i := range requests {
		requests[i] = float64(s.n[i])
	}
	removeArrivals(off[:used], requests, share)
}

// removeArrivals does the same for the given number of requests in each time bin.
func removeArrivals(off, requests []float64, share float64) {
	usual := 0.0
	for _, n := range requests {
		usual += n / float64(len(requests))
	}
	more := make([]float64, len(requests))
	for i, n := range requests {
		more[i] = n - usual
	}
	both, number := 0.0, math.SmallestNonzeroFloat64
	waves := wavesOf(off)
	for j, wave := range wavesOf(more) {
		both, number = both+wave*waves[j], number+wave*wave
	}
	part := 1 - math.Sqrt(max(1-share, 0))
	for i := range off {
		off[i] -= part * both / number * more[i]
	}
}

// wavesOf returns the amplitudes of the slowest waves of xs.
func wavesOf(xs []float64) (waves [maxWaves]float64) {
	for i, x := range xs {
		slow := math.Cos(math.Pi * (float64(i) + 0.5) / float64(len(xs)))
		before, now := 1.0, slow // cosines of multiples of the angle, each from the two before
		for j := range waves {
			waves[j] += x * now
			before, now = now, 2*slow*now-before
		}
	}
	return waves
}

// used returns the number of time bins up to the last observation.
func (s *Series) used() int {
	used := seriesBins
	for used > 1 && s.n[used-1] == 0 {
		used--
	}
	return used
}

// skewness estimates the skewness of a mean from sums of deviations in batches. The estimate is too small, by an
// amount that depends on the correlation. The factor gives the best coverage.
func (s *Series) skewness(off *[seriesBins]float64) float64 {
	const (
		batches = 48
		factor  = 1.75
	)
	var sums [batches]float64
	used := s.used()
	for i, x := range off[:used] {
		sums[i*batches/used] += x
	}
	squares, cubes := 0.0, 0.0
	for _, x := range sums {
		squares, cubes = squares+x*x, cubes+x*x*x
	}
	return factor * cubes / max(math.Pow(squares, 1.5), math.SmallestNonzeroFloat64)
}

// maxSkewness limits the estimate, because a larger one is random variation.
const maxSkewness = 1.5

// hall returns a quantile of Student's distribution for a mean with the given skewness, by Hall's cubic
// transformation.
func hall(t, skewness float64) float64 {
	b := min(max(skewness, -maxSkewness), maxSkewness) / 6
	if math.Abs(b) < 1e-6 {
		return t
	}
	return (math.Cbrt(1+6*b*(t-b)) - 1) / (2 * b)
}

// Normal975 is the 97.5 % quantile of the normal distribution.
const Normal975 = 1.959963984540054

// student975 is a fast StudentQuantile of 95 %, with four correct digits from 8 degrees of freedom (Cornish and
// Fisher).
func student975[T int | float64](freedom T) float64 {
	const z = Normal975
	v := float64(freedom)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}

// VarianceRatio95 returns the ratio of estimated to true variance that is not exceeded in 95 % of all cases (Wilson
// and Hilferty).
func VarianceRatio95(freedom int) float64 {
	const normal95 = 1.644853627
	k := 2 / (9 * float64(freedom))
	return math.Pow(1-k+normal95*math.Sqrt(k), 3)
}
