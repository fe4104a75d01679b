package stat

import (
	"math"
	"slices"
)

// warmUpBatch is the number of observations averaged together, so that a single outlier does not decide.
const warmUpBatch = 5

// WarmUp returns the number of observations to drop from the start so that the variance of the mean of the rest is
// nearly minimal (MSER-5). It is the smallest such number: a multiple of five, at most half of xs, and 0 if xs is too
// short.
func WarmUp(xs []float64) int {
	const (
		least  = 6   // batches
		nearly = 1.1 // accepted multiple of the smallest variance of the mean
	)
	batches := len(xs) / warmUpBatch
	if batches < least {
		return 0
	}
	variances := make([]float64, batches) // variance of the mean from each batch on
	n, mean, squares := 0.0, 0.0, 0.0
	for i := batches - 1; i >= 0; i-- { // Welford's algorithm, from the end
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

// TrendWaves is the smallest number of waves that Trend compares.
const TrendWaves = 9

// Trend reports whether a series rises or falls significantly from start to end: whether its slowest wave is far
// above the following ones. waves is the number of waves that are slow enough to compare, at most 24.
func (s *Series) Trend(waves int) bool {
	n := s.N()
	if n < minBins || s.effectiveBins() < minBins {
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
	const byChance = 0.005 // share of series without a trend
	power := s.power(&off)
	others := float64(min(max(waves, TrendWaves), maxWaves) - 1)
	rest := (power[int(others)] - power[0]) / others
	return StudentP(math.Sqrt(power[0]/rest), others) < byChance
}
