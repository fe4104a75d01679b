package conclusion

import (
	"fmt"
	"math"

	"tacho/metric"
)

// failureMetric is the metric of a Break that is no latency.
const failureMetric = "failures"

// mostFailed is the share of failed requests above which failures break a level that
// keeps every limit.
const mostFailed = 1 - goodShare

// breaks is the metric that a level misses most: of those with a limit, the one that
// is the largest multiple of its limit; otherwise TTFT, or E2EL if there are no
// tokens. It is nil if no metric is known.
func (k *climb) breaks(i int) *Break {
	s := k.at(i)
	var worst *Break
	for _, slo := range s.Config.Goodput {
		b := tailBreak(metric.Named(slo.Metric), s)
		if b == nil {
			continue
		}
		b.Limit = slo.LimitMillis
		if worst == nil || b.Value*worst.Limit > worst.Value*b.Limit {
			worst = b
		}
	}
	failed := float64(s.Failed) / float64(max(s.Ended(), 1))
	if worst != nil {
		if worst.Value <= worst.Limit && failed > mostFailed {
			return &Break{Metric: failureMetric, Statistic: "share", Value: failed}
		}
		return worst
	}
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if b := tailBreak(m, s); b != nil {
			return b
		}
	}
	return nil
}

// tailBreak is the tail of a metric; nil if it is not known.
func tailBreak(m *metric.Metric, s *metric.Summary) *Break {
	if m == nil || s.Dist(m).Stats == nil {
		return nil
	}
	name, of := tailOf(m, []*metric.Summary{s})
	v := of(s)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil // results of other tools do not always have it
	}
	return &Break{Metric: m.Name, Statistic: name, Value: v, Unit: string(m.Unit)}
}

// untried says which loads next to the first n levels were not tried.
func (k *climb) untried(n int) string {
	switch {
	case n == 0:
		return "no load below " + k.words(0) + " was tried"
	case n == len(k.places) && k.invalidAbove(n-1):
		return "no load above " + k.words(n-1) + " has a usable result"
	case n == len(k.places):
		return "no load above " + k.words(n-1) + " was tried"
	case k.option != "request-rate" && k.load[n]-k.load[n-1] <= 1:
		return "" // there is no load between them
	}
	return fmt.Sprintf("no load between %s and %s was tried", Brief(k.load[n-1]), k.words(n))
}

// invalidAbove says whether an INVALID level has more load than a level.
func (k *climb) invalidAbove(i int) bool {
	for j := range k.all {
		l := &k.all[j]
		if flags := l.Flags(); l.Summary.Verdict.Severity == metric.Invalid && len(flags) == 1 && flags[0].Name == k.option {
			if v, number := flags[0].Number(); number && v > k.load[i] && !math.IsInf(v, 0) {
				return true
			}
		}
	}
	return false
}
