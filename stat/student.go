package stat

import (
	"cmp"
	"math"
	"slices"
)

// StudentP returns the two-sided p-value of t with the given degrees of freedom.
func StudentP(t, degrees float64) float64 {
	if math.IsNaN(t) || degrees <= 0 {
		return 1
	}
	return incompleteBeta(degrees/2, 0.5, degrees/(degrees+t*t))
}

// StudentQuantile returns the t whose two-sided p-value is 1 - level.
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

// BenjaminiHochberg adjusts p-values of several tests. If all tests with an adjusted
// p-value below x count as significant, the expected share of false discoveries is
// at most x.
func BenjaminiHochberg(ps []float64) []float64 {
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
