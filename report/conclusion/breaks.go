package conclusion

import (
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// failureMetric is the metric of a Break caused by failed requests instead of a latency.
const failureMetric = "failures"

// maxFailedShare is the share of failed requests above which a level is broken by failures,
// even if it keeps every latency limit.
const maxFailedShare = 1 - goodShare

// breaks returns the metric that level i misses most. If there are SLOs, this is the
// metric with the largest ratio of value to limit. Without SLOs it is TTFT, or E2EL if
// there are no tokens. breaks returns nil if no metric is known.
func (k *climb) breaks(i int) *Break {
	s := k.at(i)
	if s.Config.SLO != "" {
		return goalBreak(s)
	}
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
		if worst.Value <= worst.Limit && failed > maxFailedShare {
			return &Break{Metric: failureMetric, Statistic: "share", Value: failed}
		}
		return worst
	}
	return latencyBreak(s)
}

// goalBreak returns the first goal that a level misses, or else its first goal.
func goalBreak(s *metric.Summary) *Break {
	goals := s.Config.Goals()
	g := &goals[max(slices.IndexFunc(goals, func(g metric.Condition) bool { return g.Standing(s) == metric.Missed }), 0)]
	v, known := g.Of(s)
	if g.OfLevel() && known {
		statistic := "number"
		if g.Unit == metric.Millis {
			statistic = "longest"
		}
		return &Break{Metric: "pauses", Statistic: statistic, Value: v, Unit: string(g.Unit), Limit: g.Limit}
	}
	beyond := g.Negated()
	if failed := float64(s.Failed) / float64(max(s.Ended(), 1)); g.Metric == nil || !known || g.Standing(s) == metric.Missed && !beyond.Holds(v) {
		return &Break{Metric: failureMetric, Statistic: "share", Value: failed}
	}
	_, statistic, _ := strings.Cut(g.Name, ".")
	return &Break{Metric: g.Metric.Name, Statistic: statistic, Value: v, Unit: string(g.Unit), Limit: g.Limit}
}

// latencyBreak returns the tail of TTFT, or of E2EL if there are no tokens. It returns nil if neither is known.
func latencyBreak(s *metric.Summary) *Break {
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if b := tailBreak(m, s); b != nil {
			return b
		}
	}
	return nil
}

// tailBreak returns the tail of a metric, or nil if the tail is unknown or not usable.
func tailBreak(m *metric.Metric, s *metric.Summary) *Break {
	if m == nil || s.Dist(m).Stats == nil || s.Verdict.Voids(m.Name) {
		return nil
	}
	name, of := tailOf(m, []*metric.Summary{s})
	v := of(s)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil // results of other tools may lack the percentile
	}
	return &Break{Metric: m.Name, Statistic: name, Value: v, Unit: string(m.Unit)}
}

// untried names the loads next to the first n levels that were not tried.
func (k *climb) untried(n int) string {
	switch {
	case n == 0:
		return "no load below " + k.words(0) + " was tried"
	case n == len(k.places) && k.unusableAbove(n-1):
		return "no load above " + k.words(n-1) + " has a usable result"
	case n == len(k.places):
		return "no load above " + k.words(n-1) + " was tried"
	case k.option != "request-rate" && k.load[n]-k.load[n-1] <= 1:
		return "" // no load lies between two consecutive integers
	}
	return "no load between " + loadRange(k.option, metric.Setting(k.load[n-1]), metric.Setting(k.load[n])) + " was tried"
}

// unusableAbove reports whether there is a level that supports no conclusion with more load than level i.
func (k *climb) unusableAbove(i int) bool {
	for j := range k.all {
		l := &k.all[j]
		unusable := l.Summary.Verdict.Severity == metric.Invalid || !supports(l)
		if flags := l.Flags(); unusable && len(flags) == 1 && flags[0].Name == k.option {
			if v, number := flags[0].Number(); number && v > k.load[i] && !math.IsInf(v, 0) {
				return true
			}
		}
	}
	return false
}
