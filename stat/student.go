package stat

import (
	"cmp"
	"math"
	"slices"
)

// StudentP is the chance that a t-distributed number of so many degrees of
// freedom is at least as far from 0 as t, on either side.
func StudentP(t, degrees float64) float64 {
	if math.IsNaN(t) || degrees <= 0 {
		return 1
	}
	return incompleteBeta(degrees/2, 0.5, degrees/(degrees+t*t))
}

// StudentQuantile is the t that is passed, on both sides together, with a chance
// of 1 - level.
func StudentQuantile(level, degrees float64) float64 {
	low, high := 0.0, 1.0
	for StudentP(high, degrees) > 1-level && high < 1e9 {
		high *= 2
	}
	for range 80 {
		if mid := (low + high) / 2; StudentP(mid, degrees) > 1-level {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// Adjusted are chances of error made fit for being looked at together, so that
// of all that are found at most a share of that chance is found wrongly, and
// nothing at all but with that chance where there is nothing (Benjamini and
// Hochberg).
func Adjusted(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(ps[i], ps[j]) })
	out := make([]float64, len(ps))
	least := 1.0
	for k, i := range slices.Backward(order) {
		least = min(least, ps[i]*float64(len(ps))/float64(k+1))
		out[i] = least
	}
	return out
}
