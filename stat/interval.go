package stat

import "math"

// A Warning is the reason an interval is missing or unreliable.
type Warning string

// The warnings.
const (
	TooFew     Warning = "too few"         // too few observations, so the interval has no lower or no upper end
	Correlated Warning = "correlated"      // consecutive observations are correlated, so the effective sample size is small
	Unsteady   Warning = "no steady state" // the run was not in steady state for long enough
	Offered    Warning = "set by the load" // a server in steady state serves the offered load, however fast it is
	Burst      Warning = "at once"         // all observations are from one burst or a few, so one run does not show how runs vary
)

// incompleteBeta is the regularized incomplete beta function, computed by its continued fraction (Lentz's method).
func incompleteBeta(a, b, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	if x < (a+1)/(a+b+2) {
		return front * betaFraction(a, b, x) / a
	}
	return 1 - front*betaFraction(b, a, 1-x)/b
}

func betaFraction(a, b, x float64) float64 {
	const tiny = 1e-300
	safe := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/safe(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m < 1e5; m++ {
		for _, step := range [2]float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			d = 1 / safe(1+step*d)
			c = safe(1 + step/c)
			h *= d * c
		}
		if math.Abs(d*c-1) < 1e-14 {
			break
		}
	}
	return h
}

// EffectiveSize returns the number of independent observations that determine a mean as precisely as xs, which are in
// order of time. It is n divided by the sum of the autocorrelations, added up while their pairwise sums are positive
// (Geyer's rule).
func EffectiveSize(xs []float64) float64 {
	n := float64(len(xs))
	return min(n/max(correlations(xs), 1), n)
}

// correlations returns the sum of the autocorrelations of xs over all lags, by Geyer's rule. It is 1 for independent
// observations and for constants.
func correlations(xs []float64) float64 {
	mean := Sample(xs).rawMean()
	variance := autocovariance(xs, mean, 0)
	if len(xs) < 4 || variance == 0 {
		return 1
	}
	sum := 1.0
	for lag := 1; lag+1 < len(xs)/2; lag += 2 {
		pair := (autocovariance(xs, mean, lag) + autocovariance(xs, mean, lag+1)) / variance
		if pair <= 0 {
			break
		}
		sum += 2 * pair
	}
	return sum
}

// rawMean returns the mean of observations in any order.
func (s Sample) rawMean() float64 {
	if len(s) == 0 {
		return 0
	}
	return sum(len(s), func(i int) float64 { return s[i] }) / float64(len(s))
}

func autocovariance(xs []float64, mean float64, lag int) float64 {
	n := len(xs)
	if lag >= n {
		return 0
	}
	return sum(n-lag, func(i int) float64 { return (xs[i] - mean) * (xs[i+lag] - mean) }) / float64(n)
}
