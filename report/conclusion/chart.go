package conclusion

import (
	"math"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A Chart is the tail of a latency over the loads of a run.
type Chart struct {
	Metric    *metric.Metric
	Statistic string // "p99", "max"
	Unit      string // unit of the loads
	Loads     []float64
	Values    []float64         // ms
	Verdicts  []metric.Severity // of each load
	Limit     float64           // limit of the SLO in ms; 0 if there is none
}

// ChartOf returns the chart of the metric that breaks first, or else of a metric with an SLO, TTFT or
// E2EL. It leaves out INVALID levels, and returns nil if fewer than two loads remain.
func ChartOf(run *outcome.Run) *Chart {
	usable := slices.DeleteFunc(slices.Clone(run.Levels), func(l outcome.Level) bool {
		return l.Summary.Throughput == nil || l.Summary.Verdict.Severity == metric.Invalid
	})
	places, option, load := outcome.Ladder(usable)
	if len(places) == 0 {
		return nil
	}
	slos := usable[0].Summary.Config.Goodput
	var names []string
	if b := Of(run).Breaks; b != nil {
		names = append(names, b.Metric)
	}
	for _, slo := range slos {
		names = append(names, slo.Metric)
	}
	levels := make([]*metric.Summary, len(places))
	for i, place := range places {
		levels[i] = &usable[place].Summary
	}
	for _, name := range append(names, metric.TTFT.Name, metric.E2EL.Name) {
		m := metric.Named(name)
		if m == nil || m.Unit != metric.Millis {
			continue
		}
		if c := chartOf(m, levels, load, slos); c != nil {
			c.Unit = map[string]string{
				"request-rate": "requests/s", "max-concurrency": "concurrent requests", "num-prompts": "requests in a burst",
			}[option]
			return c
		}
	}
	return nil
}

// chartOf returns the chart of one metric, or nil if fewer than two levels have it.
func chartOf(m *metric.Metric, levels []*metric.Summary, loads []float64, slos []metric.SLO) *Chart {
	c := &Chart{Metric: m}
	var known []*metric.Summary
	for i, s := range levels {
		if tailBreak(m, s) != nil {
			known, c.Loads, c.Verdicts = append(known, s), append(c.Loads, loads[i]), append(c.Verdicts, s.Verdict.Severity)
		}
	}
	if len(known) < 2 {
		return nil
	}
	statistic, of := tailOf(m, known)
	c.Statistic = statistic
	for _, s := range known {
		c.Values = append(c.Values, of(s))
	}
	if i := slices.IndexFunc(slos, func(s metric.SLO) bool { return s.Metric == m.Name && s.Percentile == 0 }); i >= 0 {
		c.Limit = slos[i].LimitMillis
	}
	if slices.ContainsFunc(c.Values, math.IsNaN) {
		return nil
	}
	return c
}
