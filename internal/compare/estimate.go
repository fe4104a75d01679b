package compare

import (
	"math"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/stat"
)

// An estimated is a quantity of one side: the value, and the standard deviation between runs.
type estimated struct {
	value float64
	runs  int     // runs with a value
	std   float64 // standard deviation between runs; 0 for one run
}

const (
	invalid    = "the figure is INVALID in one of the runs"
	noRequests = "the result has no single requests"
	noMethod   = "no estimate of the variation: repeat the runs"
	noSpread   = "the values do not vary, so their error is unknown: repeat the runs"
	oneBurst   = "a burst is one observation, and the two bursts sent different work: use --repeat 4, or the same --seed"
)

// levelValue returns a quantity of a level from its summary, or from its requests if the summary lacks
// the percentile.
func levelValue(l *outcome.Level, q metric.Quantity) (float64, bool, error) {
	if v, ok := q.Of(&l.Summary); ok {
		return v, true, nil
	}
	if q.Metric == nil || q.P == 0 || l.Records == nil || l.Summary.Dist(q.Metric).Stats == nil {
		return 0, false, nil
	}
	var all stat.Digest
	for r, err := range l.Records() {
		if err != nil {
			return 0, false, err
		}
		q.Metric.Of(r, func(v float64) { all.Add(v) })
	}
	if all.N() == 0 {
		return 0, false, nil
	}
	return all.Distribution().Quantile(q.P / 100), true, nil
}

// estimate returns a quantity of the levels of one side, as the mean of several runs. It returns nil if
// no run has the quantity.
func estimate(levels []*outcome.Level, q metric.Quantity) (*estimated, error) {
	var values []float64
	for _, l := range levels {
		v, ok, err := levelValue(l, q)
		if err != nil {
			return nil, err
		}
		if ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	mean, std := meanStd(values)
	return &estimated{value: mean, runs: len(values), std: std}, nil
}

// meanStd returns the mean and the sample standard deviation.
func meanStd(values []float64) (mean, std float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / max(float64(len(values)-1), 1))
}
