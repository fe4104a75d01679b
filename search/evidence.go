package search

import (
	"math"
	"slices"

	"tacho/stat"
)

// Evidence is what a probe says of a goal. Requests that are served together
// resemble each other, so that many tell as little as a few would that are
// strangers: N is how many strangers they are worth.
type Evidence struct {
	Count    float64 // requests
	N        float64 // independent observations
	Bad      float64 // of these, beyond the limit
	Share    float64 // of the values, those beyond the limit
	Value    float64 // the percentile or the mean; the share, where a request has many values or the goal is one of failures
	Spread   float64 // of a mean: its standard error
	Pressure float64 // how near the value is to the limit: 1 is at it, and above 1 beyond
}

// evidence weighs what requests, in order of time, say of goal number i.
func evidence(g Goal, window []seen, i int) Evidence {
	var means, shares []float64
	sum := mark{}
	for _, s := range window {
		if m := s.marks[i]; m.n > 0 {
			means, shares = append(means, m.sum/m.n), append(shares, m.miss/m.n)
			sum.sum, sum.n, sum.miss = sum.sum+m.sum, sum.n+m.n, sum.miss+m.miss
		}
	}
	if len(means) == 0 {
		return Evidence{}
	}
	if g.Mean {
		return meanEvidence(g, means, sum.sum/sum.n)
	}
	e := Evidence{Count: float64(len(means)), N: strangersIn(shares), Share: sum.miss / sum.n}
	if rows(shares) < fewRows {
		e.N = min(e.N, e.Count/unseen)
	}
	for _, times := range []float64{1.5, 5} {
		e.N = min(e.N, strangersIn(near(g, means, times)))
	}
	e.Bad = e.Share * e.N
	if g.Metric == nil || g.Metric.PerEvent {
		e.Value, e.Pressure = e.Share, e.Share/g.Share
		return e
	}
	q := 1 - g.Share
	if g.Floor {
		q = g.Share
	}
	return e.at(g, quantile(means, q))
}

// at fills in the value.
func (e Evidence) at(g Goal, value float64) Evidence {
	e.Value, e.Pressure = value, value/g.Limit
	if g.Floor {
		e.Pressure = g.Limit / value
	}
	return e
}

// Before some rows of requests that miss the goal were seen nobody knows how long
// they are: then so many requests are taken to be worth one.
const (
	fewRows = 3
	unseen  = 3
)

// rows is in how many rows those above zero come.
func rows(xs []float64) (n float64) {
	before := 0.0
	for _, x := range xs {
		if x > 0 && before == 0 {
			n++
		}
		before = x
	}
	return n
}

// strangersIn is how many independent observations these are worth: fewer, the more
// those above zero come in rows, and the longer they resemble each other.
func strangersIn(xs []float64) float64 {
	some := 0.0
	for _, x := range xs {
		some += failed(x > 0)
	}
	n, all := stat.EffectiveSize(xs), float64(len(xs))
	if some == 0 || some == all {
		return n
	}
	return min(n, all*rows(xs)/some/(1-some/all))
}

// near marks the values that are slow for this probe, so many times as many as may
// miss the limit: they show how slow requests come in clusters, where too few
// miss the limit to show it.
func near(g Goal, values []float64, times float64) []float64 {
	const most = 0.25
	share := min(times*g.Share, most)
	level := quantile(values, 1-share)
	if g.Floor {
		level = quantile(values, share)
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = failed(g.Floor && v < level || !g.Floor && v > level)
	}
	return out
}

// meanEvidence is that of a mean.
func meanEvidence(g Goal, values []float64, mean float64) Evidence {
	e := Evidence{Count: float64(len(values)), N: stat.EffectiveSize(values)}
	e.Spread = max(stat.New(slices.Clone(values)).Std()/math.Sqrt(e.N), 1e-6*mean)
	return e.at(g, mean)
}

// chances are how likely evidence at least as bad would be of a server that just
// keeps the goal, and evidence at least as good of one that just misses it.
func (e Evidence) chances(g Goal) (asBad, asGood float64) {
	if e.N == 0 {
		return 1, 1
	}
	if g.Mean {
		z := (e.Value - g.Limit) / e.Spread
		if g.Floor {
			z = -z
		}
		return normalTail(z), normalTail(-z)
	}
	return 1 - stat.AtMost(e.Bad-1, e.N, g.Share), stat.AtMost(e.Bad, e.N, g.Share)
}

func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// quantile is that of values of which some may be infinite.
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
