package metric_test

import (
	"testing"

	"github.com/tacho-bench/tacho/metric"
)

// A level meets an SLO if each statistic is within its limit. Failed requests count as infinitely slow.
func TestStanding(t *testing.T) {
	level := func(p99 float64, failed int, reasons ...metric.Reason) *metric.Summary {
		s := &metric.Summary{Counts: metric.Counts{Requests: 1000, Completed: 1000 - failed, Failed: failed}}
		s.Verdict = metric.Verdict{Severity: metric.Valid, Reasons: reasons}
		for _, m := range metric.All {
			s.Dists = append(s.Dists, metric.Dist{Name: m.Name})
			if m == metric.TTFT {
				s.Dists[len(s.Dists)-1] = metric.Dist{Name: m.Name, N: 1000, Stats: &metric.Stats{Mean: p99 / 2, Percentiles: []metric.Percentile{{P: 99, Value: p99}}}}
			}
		}
		return s
	}
	invalid := level(100, 0)
	invalid.Verdict.Severity = metric.Invalid
	for name, c := range map[string]struct {
		slo  string
		s    *metric.Summary
		want metric.Standing
	}{
		"within":                 {"ttft:p99<500ms", level(100, 0), metric.Met},
		"at the limit":           {"ttft:p99<500ms", level(500, 0), metric.Met},
		"beyond":                 {"ttft.p99<500ms", level(501, 0), metric.Missed},
		"one of two":             {"ttft:mean<500ms,ttft:p99<500ms", level(501, 0), metric.Missed},
		"few failures":           {"ttft:p99<500ms", level(100, 10), metric.Met},
		"failures beyond p99":    {"ttft:p99<500ms", level(100, 11), metric.Missed},
		"failures within p50":    {"ttft:p50<500ms", level(100, 400), metric.NotJudged},
		"failures of a mean":     {"ttft:mean<500ms", level(100, 11), metric.Missed},
		"limit of failures":      {"error<0.5%", level(100, 6), metric.Missed},
		"not measured":           {"tpot:p99<50ms", level(100, 0), metric.NotJudged},
		"missed, not measured":   {"tpot:p99<50ms,ttft:p99<50ms", level(100, 0), metric.Missed},
		"INVALID":                {"ttft:p99<500ms", invalid, metric.NotJudged},
		"INVALID figure":         {"ttft:p99<500ms", level(100, 0, metric.Reason{Severity: metric.Invalid, Unusable: true, Figures: []string{"ttft"}}), metric.NotJudged},
		"another INVALID figure": {"ttft:p99<500ms", level(100, 0, metric.Reason{Severity: metric.Invalid, Unusable: true, Figures: []string{"itl"}}), metric.Met},
	} {
		c.s.Config.SLO = c.slo
		if got := c.s.Standing(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, text := range []string{"ttft:p99", "ttft:p99>500ms", "ttft:p99<+5%", "ttft:p99<0", "request_throughput>5", "error<100%", "slo"} {
		if _, err := metric.ParseSLO(text); err == nil {
			t.Errorf("%s is an SLO", text)
		}
	}
}
