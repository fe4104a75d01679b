package stat

import "math"

// A Confidence is how sure a statistic of a Series is. Without a warning, the
// true value lies between Low and High with a chance of 95 %. With one they are
// infinite, for the observations cannot tell.
type Confidence struct {
	Low, High float64
	Effective float64 // how many independent observations would tell as much
	Warning   Warning // empty: none
}

// unbounded is all that can be said, for some reason.
func unbounded(effective float64, why Warning) Confidence {
	return Confidence{math.Inf(-1), math.Inf(1), effective, why}
}

const (
	leastMoments = 12  // observations, and parts of the time that have some: with fewer of these all came at once
	leastMean    = 10  // independent observations for a mean
	leastBeyond  = 3.7 // and beyond a quantile: with so many, all fall short of it in one of 40 tries

	// mostBeyond is how many times as many it takes beyond a quantile where
	// neighbours resemble each other: the rare ones then come together, and there
	// are few such times to learn from.
	mostBeyond = 2.7
	// clearlyAlike is from how many observations for an independent one on it is
	// no chance that they resemble each other.
	clearlyAlike = 1.3
	// mostWorth is how many times as much as independent ones observations may
	// tell that balance each other out: what is more is chance.
	mostWorth = 1.5
)

// A Sure tells how sure the statistics of a Series are.
type Sure struct {
	Mean   Confidence
	series *Series
	load   load
	below  *cumulation
	values Distribution
	std    float64
}

// Sure is how sure the statistics of a series are; d is the distribution of the
// same observations. Where requests are sent at a rate, their number in the whole
// time is fixed: paced then has one observation for each request. It is nil where
// that number is left to chance.
func (s *Series) Sure(d Distribution, paced *Series) Sure {
	return s.sure(d, load{paced: paced, fixed: 1, unit: 1, most: mostWaves})
}

// A load is what is known of the requests of which a series has observations.
type load struct {
	paced *Series // one observation for each request, if their number is fixed; or nil
	fixed float64 // share of that fixed number that is in paced
	unit  float64 // observations of one request
	most  int     // waves that are slow beside the time in which requests depend on each other
	long  bool    // the time is long beside that time: few effective observations are no objection
}

func (s *Series) sure(d Distribution, l load) Sure {
	if l.paced != nil && l.paced.shift != s.shift {
		l.paced = nil // it is of another time
	}
	out := Sure{series: s, load: l, below: s.cumulate(), values: d, std: d.Std()}
	out.Mean = s.mean(d.Mean(), out.std, l)
	return out
}

// mean is by the cosine estimator of the variance of a mean (equally weighted,
// with the quantiles of Student's distribution), which needs no model of how the
// observations depend on each other, with Hall's correction for skewness.
func (s *Series) mean(mean, std float64, l load) Confidence {
	n := float64(s.N())
	switch {
	case n < leastMoments:
		return unbounded(n, TooFew)
	case std == 0:
		return Confidence{mean, mean, n, ""}
	case s.moments() < leastMoments:
		return unbounded(s.moments(), AtOnce)
	}
	var off [seriesBins]float64 // of the mean, summed over each part
	for i := range off {
		off[i] = s.sums[i].float() - mean*float64(s.n[i])
	}
	skew := s.skewness(&off)
	effective, waves := s.worth(&off, std*std, l)
	if effective < leastMean && !l.long {
		return unbounded(effective, Correlated)
	}
	t, scale := student975(waves), std/math.Sqrt(effective)
	return Confidence{mean - scale*hall(t, skew), mean - scale*hall(-t, skew), min(effective, n), ""}
}

// Quantile is how sure the quantile q is: the interval between two order
// statistics, as of independent observations, but of as many as the series is
// worth. That is found from how the share of observations below the quantile
// varies in time.
func (s *Sure) Quantile(q float64) Confidence {
	if s.std == 0 || s.Mean.Warning == AtOnce || s.Mean.Warning == TooFew {
		return s.Mean
	}
	n, tail, e := float64(s.series.N()), min(q, 1-q), s.exceed(q)
	alike := max(n/max(s.Mean.Effective, 1), 1)
	out := unbounded(min(e.effective, n), "")
	if need := leastBeyond * min(alike, mostBeyond); s.Mean.Effective*tail < need || e.effective*tail < leastBeyond {
		if out.Warning = TooFew; n*tail >= leastBeyond { // as many independent ones would be enough
			out.Warning, out.Effective = Correlated, min(out.Effective, s.Mean.Effective)
		}
		return out
	}
	low, high := e.ranks(n, q, alike)
	if low < 0 || high > 1 {
		out.Warning = TooFew
		return out
	}
	return Confidence{s.values.Quantile(low), s.values.Quantile(high), out.Effective, ""}
}

// An excess is how the share of observations below a quantile varies.
type excess struct {
	effective, skewness float64
	waves               int
}

// exceed is that of the quantile q. Where all observations are of one size, the
// mean tells how they depend on each other.
func (s *Sure) exceed(q float64) excess {
	if !s.below.to(q) {
		return excess{s.Mean.Effective, 0, waveCounts[0].waves}
	}
	share := s.below.taken / s.below.all
	off := s.below.counts
	for i := range off {
		off[i] -= share * float64(s.series.n[i])
	}
	effective, waves := s.series.worth(&off, share*(1-share), s.load)
	return excess{min(effective, mostWorth*s.below.all), s.series.skewness(&off), waves}
}

// ranks are the order statistics between which the quantile q of n observations
// lies, as quantiles. alike is how many of the observations are worth one.
func (e excess) ranks(n, q, alike float64) (low, high float64) {
	// Their variance was estimated, from a part of a whole that is known: as if it
	// were known, but of fewer observations.
	waves := float64(e.waves)
	t := student975(waves * (n - 1) / max(n-1-waves, 1))
	m := e.effective * (Normal975 / t) * (Normal975 / t)
	deviation := math.Sqrt(m * q * (1 - q))
	middle, half := m*q+(Normal975*Normal975-1)*(1-2*q)/6+0.5, Normal975*deviation // of a binomial number, which is skewed
	if alike > clearlyAlike {
		// Rare ones that come together make it more skewed than that, and the
		// variance harder to find.
		middle -= (2*Normal975*Normal975 + 1) / 6 * (e.skewness - (1-2*q)/math.Sqrt(e.effective*q*(1-q))) * deviation
		half *= 1.05
	}
	rank := func(of float64) float64 { return (of/(m+1)*(n+1) - 1) / (n - 1) }
	return min(rank(middle-half), q), max(rank(middle+half), q)
}

// moments is how many parts of the time have observations, if all of them had
// as many (Kish).
func (s *Series) moments() float64 {
	sum, squares := 0.0, 0.0
	for _, n := range s.n {
		sum, squares = sum+float64(n), squares+float64(n)*float64(n)
	}
	if sum == 0 {
		return 0
	}
	return sum * sum / squares
}

// waveCounts are how many slow waves of the deviations are looked at: of half a
// period in the whole time, of two halves, three and so on. The variance of a
// mean shows in the slowest. With few effective observations fast waves tell
// nothing about it, and are left out.
var waveCounts = []struct {
	waves int
	from  float64 // effective observations
}{{8, 0}, {12, 80}, {16, 110}, {mostWaves, 150}}

const mostWaves = 24

// worth is how many independent observations would tell as much of a mean, from
// the deviations of observations of that variance, and from how many waves that
// was found.
func (s *Series) worth(off *[seriesBins]float64, variance float64, l load) (effective float64, freedom int) {
	n, first := float64(s.N()), 0.0
	if l.paced != nil {
		l.paced.even(off, l.fixed)
	}
	power := s.power(off)
	for _, c := range waveCounts {
		waves := min(c.waves, l.most)
		free := waves
		if l.paced != nil {
			free-- // one was used up by that
		}
		mean := max(power[waves-1]/float64(free), math.SmallestNonzeroFloat64)
		now := n * n * variance / (2 * mean)
		if c.from == 0 {
			first = now
		}
		few := 2*float64(waves) <= n/l.unit && first >= 0.7*n // but as good as independent
		if first/l.unit >= c.from || few {
			effective, freedom = now, free
		}
	}
	return effective, freedom
}

// power is how much of the deviations is in each wave and those before it.
func (s *Series) power(off *[seriesBins]float64) (power [mostWaves]float64) {
	sum := 0.0
	for j, wave := range wavesOf(off[:s.used()]) {
		sum += wave * wave
		power[j] = sum
	}
	return power
}

// even takes out of the deviations what follows the number of requests at a time;
// s has one observation for each. Their number in the whole time is fixed, so a rush
// is made up for elsewhere, and the mean does not show it. If only a share of that number
// is in s, a share of the rush may be made up for outside: the variance of the number in s is
// 1 - share of what it would be if the number were left to chance.
func (s *Series) even(off *[seriesBins]float64, share float64) {
	used := s.used()
	requests := make([]float64, used)
	for i := range requests {
		requests[i] = float64(s.n[i])
	}
	even(off[:used], requests, share)
}

// even is Series.even, of the number of requests in each part of the time.
func even(off, requests []float64, share float64) {
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

// wavesOf are the amplitudes of the slowest waves of xs.
func wavesOf(xs []float64) (waves [mostWaves]float64) {
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

// used is up to which part of the time there are observations.
func (s *Series) used() int {
	used := seriesBins
	for used > 1 && s.n[used-1] == 0 {
		used--
	}
	return used
}

// skewness is that of a mean, by the sums of deviations in batches. Found so it
// is too small, by how much depends on how they depend on each other; the
// factor is that with which intervals hold best.
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

// mostSkewed is beyond what a skewness is chance.
const mostSkewed = 1.5

// hall is a quantile of Student's distribution for a mean of that skewness, by
// the cubic transformation of Hall.
func hall(t, skewness float64) float64 {
	b := min(max(skewness, -mostSkewed), mostSkewed) / 6
	if math.Abs(b) < 1e-6 {
		return t
	}
	return (math.Cbrt(1+6*b*(t-b)) - 1) / (2 * b)
}

// Normal975 is the quantile 97.5 % of the normal distribution.
const Normal975 = 1.959963984540054

// student975 is StudentQuantile of 95 %, to four digits from 8 degrees of freedom
// on, at once (Cornish and Fisher).
func student975[T int | float64](freedom T) float64 {
	const z = Normal975
	v := float64(freedom)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}

// VarianceRatio95 is how far a variance of so many degrees of freedom may be above
// its true value, in 95 % of all cases (Wilson and Hilferty).
func VarianceRatio95(freedom int) float64 {
	const normal95 = 1.644853627
	k := 2 / (9 * float64(freedom))
	return math.Pow(1-k+normal95*math.Sqrt(k), 3)
}
