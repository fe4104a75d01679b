package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// An Interval holds the true value with a chance of Level, if the observations
// are what Warnings does not object to.
type Interval struct {
	Low, High float64
	Level     float64
	Warnings  []Warning
}

// A Warning is a reason not to lean on an interval.
type Warning string

// The warnings.
const (
	TooFew     Warning = "too few"    // observations: the interval has no lower or no upper end
	Correlated Warning = "correlated" // observations that follow each other resemble each other: there are fewer independent ones than it seems
	AtOnce     Warning = "at once"    // the observations are of one moment, or of a few: one run does not tell what another would give
)

// QuantileInterval is an interval of the quantile q, of independent
// observations of whatever distribution: the order statistics between which a
// binomial number of observations falls with the chance of level.
func (s Sample) QuantileInterval(q, level float64) Interval {
	n := len(s)
	if n == 0 {
		return Interval{Level: level, Warnings: []Warning{TooFew}}
	}
	out := Interval{Low: s[0], High: s[n-1], Level: level}
	tail := (1 - level) / 2
	// The number of observations below the quantile is binomial: low is the
	// largest rank that it reaches but for the tail, high the smallest it stays
	// below but for the tail.
	low, high := binomialRank(n, q, tail), binomialRank(n, q, 1-tail)+1
	if low < 1 || high > n {
		out.Warnings = append(out.Warnings, TooFew)
	}
	out.Low, out.High = s[max(low, 1)-1], s[min(high, n)-1]
	return out
}

// binomialRank is the smallest k with P(X <= k) >= p of a binomial X of n and q.
func binomialRank(n int, q, p float64) int {
	return searchInt(n, func(k int) bool { return binomialCDF(k, n, q) >= p })
}

// searchInt is the smallest k of 0..n for which ok holds, n if for none.
func searchInt(n int, ok func(int) bool) int {
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		if ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// binomialCDF is the chance of at most k of n, each with chance q.
func binomialCDF(k, n int, q float64) float64 {
	switch {
	case k >= n:
		return 1
	case k < 0 || q >= 1:
		return 0
	case q <= 0:
		return 1
	}
	return incompleteBeta(float64(n-k), float64(k+1), 1-q)
}

// incompleteBeta is the regularized incomplete beta function, by its continued
// fraction (Lentz's method).
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

// EffectiveSize is how many independent observations tell as much of the mean
// as xs do, which are in order of time: n over the sum of the autocorrelations,
// taken as far as their pairwise sums are positive (Geyer's rule).
func EffectiveSize(xs []float64) float64 {
	n := len(xs)
	mean := Sample(xs).rawMean()
	variance := autocovariance(xs, mean, 0)
	if n < 4 || variance == 0 {
		return float64(n)
	}
	sum := 1.0
	for lag := 1; lag+1 < n/2; lag += 2 {
		pair := (autocovariance(xs, mean, lag) + autocovariance(xs, mean, lag+1)) / variance
		if pair <= 0 {
			break
		}
		sum += 2 * pair
	}
	return min(float64(n)/sum, float64(n))
}

// rawMean is the mean of observations in any order.
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

// correlatedBelow is the share of effective observations below which an
// interval is warned of.
const correlatedBelow = 0.5

// Bootstrap is an interval of any statistic of xs, which are in order of time:
// the statistic of tries series made of blocks of xs. Blocks are as long as the
// correlation in xs asks for, so neighbours that resemble each other stay
// together. The same seed gives the same interval.
func Bootstrap(xs []float64, statistic func(Sample) float64, level float64, tries int, seed uint64) Interval {
	n := len(xs)
	out := Interval{Level: level}
	if n < 2 {
		out.Warnings = []Warning{TooFew}
		if n == 1 {
			out.Low, out.High = xs[0], xs[0]
		}
		return out
	}
	effective := EffectiveSize(xs)
	if effective < correlatedBelow*float64(n) {
		out.Warnings = append(out.Warnings, Correlated)
	}
	block := blockLength(n, effective)
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	values := make([]float64, tries)
	draw := make([]float64, n)
	for t := range values {
		for i := 0; i < n; i += block {
			from := r.IntN(n)
			for k := i; k < min(i+block, n); k++ {
				draw[k] = xs[(from+k-i)%n]
			}
		}
		slices.Sort(draw)
		values[t] = statistic(draw)
	}
	slices.Sort(values)
	tail := (1 - level) / 2
	out.Low, out.High = Sample(values).Quantile(tail), Sample(values).Quantile(1-tail)
	return out
}

// blockLength is the usual n^(1/3) of independent observations, longer by how
// far they are correlated.
func blockLength(n int, effective float64) int {
	length := math.Cbrt(float64(n)) * math.Pow(float64(n)/effective, 2.0/3)
	return min(max(int(math.Ceil(length)), 1), max(n/4, 1))
}
