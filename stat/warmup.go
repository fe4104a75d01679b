package stat

import "slices"

// warmUpBatch is how many observations are taken together, so that one that is
// far off does not decide.
const warmUpBatch = 5

// WarmUp is how many of the first observations to leave out, so that the mean of
// the others is surest (MSER-5): the fewest with which it is nearly so. It is a
// multiple of five, at most half of them; 0 where they are too few.
func WarmUp(xs []float64) int {
	const (
		least  = 6   // batches
		nearly = 1.1 // times the least variance of the mean
	)
	batches := len(xs) / warmUpBatch
	if batches < least {
		return 0
	}
	variances := make([]float64, batches) // of the mean, from each batch on
	n, mean, squares := 0.0, 0.0, 0.0
	for i := batches - 1; i >= 0; i-- { // Welford's sums, from the end
		n++
		x := Sample(xs[i*warmUpBatch : (i+1)*warmUpBatch]).rawMean()
		d := x - mean
		mean += d / n
		squares += d * (x - mean)
		variances[i] = squares / (n * n)
	}
	half := variances[:batches/2+1]
	return warmUpBatch * slices.IndexFunc(half, func(v float64) bool { return v <= nearly*slices.Min(half) })
}

// Trend says whether a series rises or falls from its start to its end by more
// than chance: whether its slowest wave is far above the others.
func (s *Series) Trend() bool {
	n := s.N()
	if n < leastMoments || s.moments() < leastMoments {
		return false
	}
	sum := fixed{}
	for i := range s.sums {
		sum.merge(&s.sums[i])
	}
	mean := sum.float() / float64(n)
	var off [seriesBins]float64
	for i := range off {
		off[i] = s.sums[i].float() - mean*float64(s.n[i])
	}
	power := s.power(&off)
	const (
		others   = 8
		farAbove = 14.69 // 99.5 % of Fisher's distribution, of 1 and 8 degrees of freedom
	)
	rest := (power[others] - power[0]) / others
	return power[0] > farAbove*rest
}
