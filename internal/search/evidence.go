package search

import (
	"math"
	"slices"

	"github.com/tacho-bench/tacho/stat"
)

// Evidence is the result of a probe for one goal. Requests served together have
// similar latencies, so the effective sample size is smaller than their number.
type Evidence struct {
	Count         float64 // requests
	EffectiveSize float64 // effective sample size
	Misses        float64 // misses in a sample of the effective size: Share * EffectiveSize
	Share         float64 // miss ratio
	Value         float64 // percentile or mean; Share if the goal reports a share
	StandardError float64 // of the mean, for a goal on a mean
	Pressure      float64 // ratio of Value to the limit; above 1 the goal is missed
}

// newEvidence evaluates goal i over requests in order of their due times.
func newEvidence(g Goal, window []observation, i int) Evidence {
	var means, shares []float64
	sum := goalValues{}
	for _, o := range window {
		if v := o.goals[i]; v.n > 0 {
			means, shares = append(means, v.sum/v.n), append(shares, v.misses/v.n)
			sum.sum, sum.n, sum.misses = sum.sum+v.sum, sum.n+v.n, sum.misses+v.misses
		}
	}
	if len(means) == 0 {
		return Evidence{}
	}
	if g.Mean {
		return meanEvidence(g, means, sum.sum/sum.n)
	}
	e := Evidence{Count: float64(len(means)), EffectiveSize: missSize(g, means, shares), Share: sum.misses / sum.n}
	e.Misses = e.Share * e.EffectiveSize
	if g.reportsShare() {
		e.Value, e.Pressure = e.Share, e.Share/g.Share
		return e
	}
	q := 1 - g.Share
	if g.Floor {
		q = g.Share
	}
	return e.withValue(g, quantile(means, q))
}

// meanEvidence evaluates a goal on a mean.
func meanEvidence(g Goal, values []float64, mean float64) Evidence {
	const minRelativeError = 1e-6 // if all values are equal, the variance is 0
	e := Evidence{Count: float64(len(values)), EffectiveSize: min(stat.EffectiveSize(values), partSize(values))}
	e.StandardError = max(stat.New(slices.Clone(values)).Std()/math.Sqrt(e.EffectiveSize), minRelativeError*mean)
	return e.withValue(g, mean)
}

// withValue sets the value and the pressure.
func (e Evidence) withValue(g Goal, value float64) Evidence {
	e.Value, e.Pressure = value, value/g.Limit
	if g.Floor {
		e.Pressure = g.Limit / value
	}
	return e
}

// missSize returns the effective sample size of the miss ratio of the
// goal. It is the least of the sizes at the limit and at the thresholds of
// clusterFactors. Before minClusters runs of misses occurred, it is at most a third of the
// requests.
func missSize(g Goal, values, misses []float64) float64 {
	size := min(effectiveSize(misses), partSize(misses))
	if countRuns(misses) < minClusters {
		size = min(size, float64(len(values))/unknownRunLength)
	}
	for _, factor := range clusterFactors {
		size = min(size, effectiveSize(slowest(g, values, factor)))
	}
	return size
}

// countRuns counts the runs of successive values above zero.
func countRuns(xs []float64) (n float64) {
	before := 0.0
	for _, x := range xs {
		if x > 0 && before == 0 {
			n++
		}
		before = x
	}
	return n
}

// effectiveSize returns the effective sample size of a series in which values above zero
// are misses. It is the lesser of two estimates: by autocorrelation, and by the mean
// length of the runs of misses against the mean length 1/(1-share) of independent ones.
func effectiveSize(xs []float64) float64 {
	missed := 0.0
	for _, x := range xs {
		missed += indicator(x > 0)
	}
	size, n := stat.EffectiveSize(xs), float64(len(xs))
	if missed == 0 || missed == n {
		return size
	}
	return min(size, n*countRuns(xs)/missed/(1-missed/n))
}

// partSize returns the effective sample size of a mean by the variance between parts of
// the series. It is the number of values unless the parts disagree: a server that is
// slow for seconds makes some parts slow and leaves the others.
func partSize(xs []float64) float64 {
	n := float64(len(xs))
	if n < parts*scoutRequests {
		return n
	}
	means := make([]float64, parts)
	for i := range means {
		means[i] = stat.New(slices.Clone(xs[i*len(xs)/parts : (i+1)*len(xs)/parts])).Mean()
	}
	within, between := stat.New(slices.Clone(xs)).Std(), stat.New(means).Std()
	if inflation := between * between * n / parts / (within * within); inflation > minInflation {
		return n / inflation
	}
	return n
}

// slowest marks the slowest values, a multiple of the allowed miss ratio.
func slowest(g Goal, values []float64, factor float64) []float64 {
	share := min(factor*g.Share, maxThresholdShare)
	threshold := quantile(values, 1-share)
	if g.Floor {
		threshold = quantile(values, share)
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = indicator(g.Floor && v < threshold || !g.Floor && v > threshold)
	}
	return out
}

// fewClusters reports whether too few independent clusters of misses decide: one pause
// of the server makes all requests of some seconds miss.
func (e Evidence) fewClusters(g Goal) bool {
	return !g.Mean && e.Misses < minClusters && e.Share*e.Count >= minClusters && e.Share > relevantShare*g.Share
}

// pValues returns two p-values: of the hypothesis that the load just holds, given at
// least as many misses, and of the hypothesis that it just misses, given at most as many.
func (e Evidence) pValues(g Goal) (holds, misses float64) {
	if e.EffectiveSize == 0 {
		return 1, 1
	}
	if g.Mean {
		z := (e.Value - g.Limit) / e.StandardError
		if g.Floor {
			z = -z
		}
		return normalTail(z), normalTail(-z)
	}
	return 1 - stat.BinomialCDF(e.Misses-1, e.EffectiveSize, g.Share), stat.BinomialCDF(e.Misses, e.EffectiveSize, g.Share)
}

// plus pools the evidence of two probes.
func (e Evidence) plus(g Goal, o Evidence) Evidence {
	if e.Count == 0 || o.Count == 0 {
		if e.Count == 0 {
			return o
		}
		return e
	}
	sum := Evidence{Count: e.Count + o.Count, EffectiveSize: e.EffectiveSize + o.EffectiveSize}
	sum.Share = (e.Count*e.Share + o.Count*o.Share) / sum.Count
	if sum.Misses = e.Misses + o.Misses; sum.Misses < sum.Share*sum.EffectiveSize { // a quiet probe does not divide a cluster
		sum.EffectiveSize = sum.Misses / sum.Share
	}
	if g.Mean {
		sum.StandardError = math.Hypot(e.EffectiveSize*e.StandardError, o.EffectiveSize*o.StandardError) / sum.EffectiveSize
		return sum.withValue(g, (e.EffectiveSize*e.Value+o.EffectiveSize*o.Value)/sum.EffectiveSize)
	}
	return sum
}

// missRatio returns how far the evidence is from the limit; above 1 the goal is missed.
// For a percentile it is a ratio of shares, because shares of several probes average.
func (e Evidence) missRatio(g Goal) float64 {
	if g.Mean {
		return e.Pressure
	}
	return e.Share / g.Share
}

// normalTail returns the probability that a standard normal variable exceeds z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// quantile interpolates a quantile of values, which may be infinite.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	below := sorted[int(at)]
	above := sorted[min(int(at)+1, len(sorted)-1)]
	if part := at - math.Floor(at); part > 0 && above > below {
		return below + part*(above-below)
	}
	return below
}
