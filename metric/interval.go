package metric

import (
	"cmp"
	"math"
	"time"

	"tacho"
	"tacho/stat"
)

// An Interval is how sure a mean or a percentile is: with a chance of 95 % the
// server's true value is in it, if it goes on as in the steady state of this run. It is of
// the requests of SteadyState.Settled, where the figure is Value: the figure of the whole
// run also has the filling and the emptying of the server. Requests that are
// near each other in time are not taken for independent, nor are the gaps of one
// request.
type Interval struct {
	Low       *float64     `json:"low"` // nil: the sample does not tell
	High      *float64     `json:"high"`
	Value     *float64     `json:"value,omitempty"` // the figure in the steady state
	Effective float64      `json:"effective_n"`     // how many independent values would tell as much
	Warning   stat.Warning `json:"warning,omitempty"`
}

// interval is a confidence interval of a statistic of values, of which least is the
// smallest. If none is below 0, as with times, the statistic is not, either: the
// interval ends at 0 there, and holds the true value as often as before.
func interval(c stat.Confidence, least float64) *Interval {
	out := &Interval{Effective: c.Effective, Warning: c.Warning}
	if !math.IsInf(c.Low, 0) {
		if least >= 0 {
			c.Low = max(c.Low, 0)
		}
		out.Low, out.High = &c.Low, &c.High
	}
	return out
}

// halfWidth is half the width of the interval of a value. If the interval ends at 0,
// its other half has the width.
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

// add takes in the values of a record of the first metrics. All values of a request are of the moment at which it
// was sent, so that its gaps stay together.
func (s *series) add(r *tacho.Record, v values) {
	at := momentOf(r)
	for i := range v {
		(*s)[i].AddBatch(at, &v[i])
	}
}

// momentOf is when a record counts as observed.
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

// balanced is when intervals are told of, or why they are not.
type balanced struct {
	*stat.Stretch
	why stat.Warning // of nil
}

// addIntervals says how sure each of the statistics is.
func (s *Stats) addIntervals(one *stat.Series, values stat.Distribution, in balanced) {
	set := func(mean func() *Interval, quantile func(q float64) *Interval) {
		s.MeanInterval, s.MedianInterval = mean(), quantile(0.5)
		for i := range s.Percentiles {
			p := &s.Percentiles[i]
			p.Interval = quantile(p.P / 100)
		}
	}
	if in.Stretch == nil {
		none := func() *Interval { return in.none(one, values) }
		set(none, func(float64) *Interval { return none() })
		return
	}
	sure, there := one.SureIn(values, in.Stretch)
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

// none is why there is no interval of a series.
func (b balanced) none(one *stat.Series, values stat.Distribution) *Interval {
	out := &Interval{Warning: b.why}
	if b.why != stat.Unsteady {
		mean := one.Sure(values, nil).Mean
		if values.Std() == 0 {
			return interval(mean, mean.Low) // all are alike
		}
		out.Effective, out.Warning = mean.Effective, cmp.Or(mean.Warning, b.why)
	}
	return out
}

// EffectiveSamples is how many independent values carry as much information about
// the percentile p as those of the distribution; 0 if that is not known.
func (d *Dist) EffectiveSamples(p float64) int {
	if d.Stats == nil {
		return 0
	}
	in := d.Stats.At(p).Interval
	if in == nil || in.Warning == stat.AtOnce || in.Warning == stat.Unsteady {
		return 0
	}
	return max(int(math.Round(in.Effective)), 1)
}
