// Package stat computes statistics of samples. It knows nothing about requests.
//
// A Sample contains finite numbers only and never returns NaN. An empty Sample returns 0 for every statistic; check
// its length to tell "nothing measured" from "zero measured". Values up to 1e150 in magnitude are safe. Beyond 1e150,
// a sum of squares overflows to +Inf.
package stat

import (
	"math"
	"slices"
)

// A Sample is a set of finite observations in ascending order.
type Sample []float64

// New makes a Sample from xs and takes ownership of xs. NaN and infinities are dropped.
func New(xs []float64) Sample {
	xs = slices.DeleteFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	slices.Sort(xs)
	return xs
}

// Mean returns the arithmetic mean.
func (s Sample) Mean() float64 {
	if len(s) == 0 {
		return 0
	}
	mean := sum(len(s), func(i int) float64 { return s[i] }) / float64(len(s))
	// Rounding may put the mean of equal values an ulp outside their range.
	return min(max(mean, s[0]), s[len(s)-1])
}

// Std returns the population standard deviation: the sum of squares is divided by n, not by n-1.
func (s Sample) Std() float64 {
	if len(s) == 0 {
		return 0
	}
	mean := s.Mean()
	squares := sum(len(s), func(i int) float64 { d := s[i] - mean; return d * d })
	return math.Sqrt(squares / float64(len(s)))
}

// sum adds f(0) ... f(n-1) pairwise, so that the rounding error of millions of values is as small as the error of a
// few.
func sum(n int, f func(int) float64) float64 {
	const block = 128
	var pairwise func(lo, hi int) float64
	pairwise = func(lo, hi int) float64 {
		if hi-lo > block {
			mid := lo + (hi-lo)/2
			return pairwise(lo, mid) + pairwise(mid, hi)
		}
		total := 0.0
		for i := lo; i < hi; i++ {
			total += f(i)
		}
		return total
	}
	return pairwise(0, n)
}

// Quantile uses numpy's default method, "linear": the value at position (n-1)q, interpolated between the two nearest
// observations. q outside 0..1 means the nearer end.
func (s Sample) Quantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	last := len(s) - 1
	position := float64(last) * q
	if !(position > 0) { // also true if q is NaN
		return s[0]
	}
	if position >= float64(last) {
		return s[last]
	}
	below := int(position)
	a, b := s[below], s[below+1]
	t := position - float64(below)
	// Working from the nearer end keeps the result within a..b. The conversions forbid fused multiply-add, so the
	// digits are the same on every architecture.
	if t >= 0.5 {
		return b - float64((b-a)*(1-t))
	}
	return a + float64((b-a)*t)
}

// Median returns the middle observation, or the mean of the two middle ones.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	a, b := s[(len(s)-1)/2], s[len(s)/2]
	if a == b {
		return a
	}
	return (a + b) / 2
}

// Min returns the smallest observation.
func (s Sample) Min() float64 { return s.Quantile(0) }

// Max returns the largest observation.
func (s Sample) Max() float64 { return s.Quantile(1) }

// missProbability is the accepted probability that a sample of MinSampleSize has no observation beyond the quantile.
const missProbability = 0.025

// MinSampleSize returns the number of observations that the quantile q needs. With fewer, the probability that no
// observation lies beyond the true quantile is above 2.5 %, and the maximum of the sample takes the place of the
// quantile. The result is 0 for q <= 0 or q >= 1, because no sample size is enough for the ends.
func MinSampleSize(q float64) int {
	q = max(q, 1-q)
	if !(q < 1) {
		return 0
	}
	return int(math.Ceil(math.Log(missProbability) / math.Log(q)))
}
