package stat

// BinomialCDF returns the probability of at most k successes in n independent
// trials with probability p each. k and n need not be whole numbers, because an
// effective sample size is not.
func BinomialCDF(k, n, p float64) float64 {
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
