// Package stat is the arithmetic of samples. It knows nothing of requests.
//
// A Sample never answers NaN: it holds finite numbers only, and an empty one
// answers 0 to every question, so whoever must tell "nothing was measured" from
// "zero was measured" asks for the length. The promise holds for values up to
// 1e150 in magnitude; beyond that a sum of squares overflows to +Inf.
package stat

import (
	"math"
	"slices"
)

// A Sample is a set of finite observations in ascending order.
type Sample []float64

// New makes a Sample of xs, which it takes over: NaN and infinities are
// dropped, the rest is sorted.
func New(xs []float64) Sample {
	xs = slices.DeleteFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	slices.Sort(xs)
	return xs
}

// Mean is the arithmetic mean.
func (s Sample) Mean() float64 {
	if len(s) == 0 {
		return 0
	}
	mean := sum(len(s), func(i int) float64 { return s[i] }) / float64(len(s))
	// Rounding may put the mean of equal values an ulp outside of them.
	return min(max(mean, s[0]), s[len(s)-1])
}

// Std is the population standard deviation: the mean is taken of n squares,
// not of n-1.
func (s Sample) Std() float64 {
	if len(s) == 0 {
		return 0
	}
	mean := s.Mean()
	squares := sum(len(s), func(i int) float64 { d := s[i] - mean; return d * d })
	return math.Sqrt(squares / float64(len(s)))
}

// sum adds f(0) ... f(n-1) pairwise, which keeps the rounding error of millions
// of values as small as that of a few.
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

// Quantile is numpy's default, "linear": the value at position (n-1)q, linear
// between the two observations next to it. q outside 0..1 means the nearer end.
func (s Sample) Quantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	last := len(s) - 1
	position := float64(last) * q
	if !(position > 0) { // also where q is NaN
		return s[0]
	}
	if position >= float64(last) {
		return s[last]
	}
	below := int(position)
	a, b := s[below], s[below+1]
	t := position - float64(below)
	// Working from the nearer end keeps the result within a..b. The conversions
	// forbid fused multiply-add: the same digits on every architecture.
	if t >= 0.5 {
		return b - float64((b-a)*(1-t))
	}
	return a + float64((b-a)*t)
}

// Median is the middle observation, or the mean of the two in the middle.
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

// Min is the smallest observation.
func (s Sample) Min() float64 { return s.Quantile(0) }

// Max is the largest observation.
func (s Sample) Max() float64 { return s.Quantile(1) }

// missChance is how often a sample of the size EnoughFor asks for may still
// have nothing beyond the quantile.
const missChance = 0.025

// EnoughFor is how many observations the quantile q needs. With fewer, the
// chance that none of them lies beyond the true quantile is above 2.5 %, and
// the largest of the sample is shown where the quantile should be. It is 0 for
// the ends themselves (q <= 0 or q >= 1), which no sample size settles.
func EnoughFor(q float64) int {
	q = max(q, 1-q)
	if !(q < 1) {
		return 0
	}
	return int(math.Ceil(math.Log(missChance) / math.Log(q)))
}
