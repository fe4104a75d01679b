package proof

import (
	"math"
	"slices"
)

// Gaps returns the differences between successive times, starting from 0.
func Gaps(times []float64) []float64 {
	out := make([]float64, len(times))
	prev := 0.0
	for i, t := range times {
		out[i], prev = t-prev, t
	}
	return out
}

// Dispersion returns the index of dispersion of a point process: the variance
// of the number of points per window divided by its mean. It is 1 for a Poisson
// process, 0 for a clock, and tends to the squared coefficient of variation of
// the gaps as the window grows. times must be ascending; a last, partial window
// is ignored. The result is NaN for fewer than two windows.
func Dispersion(times []float64, window float64) float64 {
	if len(times) == 0 {
		return math.NaN()
	}
	counts := make([]float64, int(times[len(times)-1]/window))
	for _, t := range times {
		if i := int(t / window); i < len(counts) {
			counts[i]++
		}
	}
	if len(counts) < 2 {
		return math.NaN()
	}
	mean, ss := 0.0, 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	for _, c := range counts {
		ss += (c - mean) * (c - mean)
	}
	return ss / float64(len(counts)-1) / mean
}

// KolmogorovSmirnov returns the largest distance between the empirical
// distribution of xs and cdf. For n independent observations of cdf it is below
// 1.95/sqrt(n) in 999 of 1000 samples.
func KolmogorovSmirnov(xs []float64, cdf func(float64) float64) float64 {
	s := slices.Clone(xs)
	slices.Sort(s)
	n, d := float64(len(s)), 0.0
	for i, x := range s {
		p := cdf(x)
		d = max(d, p-float64(i)/n, float64(i+1)/n-p)
	}
	return d
}

// GammaCDF returns the probability that a gamma variable with the given shape
// and mean 1 is at most x.
func GammaCDF(shape, x float64) float64 {
	if x <= 0 {
		return 0
	}
	return lowerGamma(shape, shape*x)
}

// lowerGamma is the regularized lower incomplete gamma function P(a, x). It
// uses the power series if that converges fast, otherwise the continued
// fraction of the upper function (Lentz's method).
func lowerGamma(a, x float64) float64 {
	lg, _ := math.Lgamma(a)
	front := math.Exp(-x + a*math.Log(x) - lg)
	if x < a+1 {
		term, sum := 1/a, 1/a
		for n := a + 1; math.Abs(term) > math.Abs(sum)*1e-15; n++ {
			term *= x / n
			sum += term
		}
		return sum * front
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1.0; i < 1e5; i++ {
		an := -i * (i - a)
		b += 2
		d = 1 / nonZero(an*d+b, tiny)
		c = nonZero(b+an/c, tiny)
		h *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return 1 - front*h
}

func nonZero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}
