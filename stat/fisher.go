package stat

import "math"

// FisherP returns the two-sided p-value of Fisher's exact test: the probability of two samples with
// n and m trials that differ at least as much as a and b successes do, if their shares are equal and
// all a+b successes are assigned at random.
func FisherP(a, n, b, m int) float64 {
	successes := a + b
	least, most := max(0, successes-m), min(successes, n)
	logOf := func(k int) float64 { return logChoose(n, k) + logChoose(m, successes-k) }
	all, seen := logChoose(n+m, successes), logOf(a)
	p := 0.0
	for k := least; k <= most; k++ {
		if l := logOf(k); l <= seen+1e-7 {
			p += math.Exp(l - all)
		}
	}
	return min(p, 1)
}

// logChoose returns the logarithm of the binomial coefficient.
func logChoose(n, k int) float64 {
	of := func(v int) float64 {
		l, _ := math.Lgamma(float64(v) + 1)
		return l
	}
	return of(n) - of(k) - of(n-k)
}
