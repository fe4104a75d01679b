package stat

// AtMost is the chance that at most k of n independent tries come out, each with
// chance p. Neither k nor n need be whole: observations that resemble each other
// are worth fewer than they are.
func AtMost(k, n, p float64) float64 {
	switch {
	case k >= n:
		return 1
	case k < 0 || p >= 1:
		return 0
	case p <= 0:
		return 1
	}
	return incompleteBeta(n-k, k+1, 1-p)
}
