package metric

import (
	"cmp"
	"math"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// An Interval is the 95 % confidence interval of a mean or percentile: it contains the server's true
// value with a probability of 95 %, if the server continues in the steady state of this run. The
// interval covers the requests of SteadyState.Settled, for which the statistic is Value. The statistic
// of the whole run also includes the ramp up and the ramp down. Requests close in time, and the gaps of
// one request, are not assumed to be independent.
type Interval struct {
	Low       *float64     `json:"low"` // nil if the sample is not sufficient
	High      *float64     `json:"high"`
	Value     *float64     `json:"value,omitempty"` // the statistic in the steady state
	Effective float64      `json:"effective_n"`     // effective sample size
	Warning   stat.Warning `json:"warning,omitempty"`
}

// interval converts a confidence interval. least is the smallest value of the sample. If no value is
// negative, as with times, the statistic is not negative either: the interval then ends at 0, and its
// coverage does not change.
func interval(c stat.Interval, least float64) *Interval {
	out := &Interval{Effective: c.Effective, Warning: c.Warning}
	if !math.IsInf(c.Low, 0) {
		if least >= 0 {
			c.Low = max(c.Low, 0)
		}
		out.Low, out.High = &c.Low, &c.High
	}
	return out
}

// halfWidth returns half the width of the interval around a value. If the interval was cut at 0,
// halfWidth returns the width of the upper half.
func (in *Interval) halfWidth(value float64) float64 {
	if in.Value != nil {
		value = *in.Value
	}
	if *in.Low == 0 {
		return *in.High - value
	}
	return (*in.High - *in.Low) / 2
}

// series are the values of each metric with their times.
type series []stat.Series

// add adds the values of a record for the first metrics. All values of a request have its send time, so
// that its gaps stay together.
func (s *series) add(r *tacho.Record, v values) {
	at := momentOf(r)
	for i := range v {
		(*s)[i].AddBatch(at, &v[i])
	}
}

// momentOf returns the time at which a record counts as observed.
func momentOf(r *tacho.Record) time.Duration {
	if r.Sent == tacho.Never {
		return r.Due
	}
	return r.Sent
}

func (s *series) ready(metrics int) {
	if len(*s) == 0 {
		*s = make(series, metrics)
	}
}

func (s *series) merge(o series) {
	s.ready(len(o))
	for i := range o {
		(*s)[i].Merge(&o[i])
	}
}

// balanced is the window of the confidence intervals, or the reason there is none.
type balanced struct {
	*stat.Window
	why stat.Warning // if Window is nil
}

// addIntervals sets the confidence intervals of all statistics.
func (s *Stats) addIntervals(one *stat.Series, values stat.Distribution, in balanced) {
	set := func(mean func() *Interval, quantile func(q float64) *Interval) {
		s.MeanInterval, s.MedianInterval = mean(), quantile(0.5)
		if s.MedianInterval.Low == nil && s.MeanInterval.Low != nil { // the mean depends on the tail as well
			s.MeanInterval = s.MedianInterval
		}
		for i := range s.Percentiles {
			p := &s.Percentiles[i]
			p.Interval = quantile(p.P / 100)
		}
	}
	if in.Window == nil {
		none := func() *Interval { return in.none(one, values) }
		set(none, func(float64) *Interval { return none() })
		return
	}
	sure, there := one.IntervalsIn(values, in.Window)
	with := func(out *Interval, value func() float64) *Interval {
		if out.Low != nil {
			v := value()
			out.Value = &v
		}
		return out
	}
	set(func() *Interval { return with(interval(sure.Mean, s.Min), func() float64 { return there.Mean() }) },
		func(q float64) *Interval {
			return with(interval(sure.Quantile(q), s.Min), func() float64 { return there.Quantile(q) })
		})
}

// none returns the reason for a missing interval.
func (b balanced) none(one *stat.Series, values stat.Distribution) *Interval {
	out := &Interval{Warning: b.why}
	if b.why != stat.Unsteady {
		mean := one.Intervals(values, nil).Mean
		if values.Std() == 0 {
			return interval(mean, mean.Low) // all values are equal
		}
		out.Effective, out.Warning = mean.Effective, cmp.Or(mean.Warning, b.why)
	}
	return out
}

// EffectiveSamples returns the effective sample size for the percentile p, or 0 if unknown.
func (d *Dist) EffectiveSamples(p float64) int {
	if d.Stats == nil {
		return 0
	}
	in := d.Stats.At(p).Interval
	if in == nil || in.Warning == stat.Burst || in.Warning == stat.Unsteady {
		return 0
	}
	return max(int(math.Round(in.Effective)), 1)
}
