package metric_test

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// A level supports a condition if its verdict does not rule out the figure and it has enough requests.
// With too few, only a figure that is certainly beyond its limit counts.
func TestSupport(t *testing.T) {
	late := metric.Reason{Code: "late-reads", Severity: metric.Degraded, Unusable: true, Figures: []string{"itl", "stalled_share"}, Text: "late reads"}
	level := func(completed, failed int, set func(*metric.Summary)) *metric.Summary {
		s := &metric.Summary{Verdict: metric.Verdict{Severity: metric.Valid}}
		s.Completed, s.Failed, s.Requests = completed, failed, completed+failed
		for _, name := range []string{"ttft", "itl"} {
			n := completed * map[string]int{"ttft": 1, "itl": 50}[name]
			s.Dists = append(s.Dists, metric.Dist{Name: name, Unit: metric.Millis, N: n, Stats: &metric.Stats{Mean: 100, Median: 100, Percentiles: []metric.Percentile{{P: 99, Value: 300}}}})
		}
		if set != nil {
			set(s)
		}
		return s
	}
	verdict := func(v metric.Severity, reasons ...metric.Reason) func(*metric.Summary) {
		return func(s *metric.Summary) { s.Verdict = metric.Verdict{Severity: v, Reasons: reasons} }
	}
	for _, c := range []struct {
		condition string
		s         *metric.Summary
		unusable  string
		few       string
		certain   bool // beyond the limit whatever the number of requests
	}{
		{"ttft.mean>1ms", level(400, 0, verdict(metric.Invalid)), "the level is INVALID", "", false},
		{"ttft.mean>+1%", level(400, 0, verdict(metric.Invalid)), "the level is INVALID", "", false},
		{"failures>1%", level(400, 0, verdict(metric.Invalid)), "the level is INVALID", "", false},
		{"unsent>0%", level(400, 0, verdict(metric.Invalid)), "", "", false},
		{"verdict>valid", level(0, 0, verdict(metric.Invalid)), "", "", false},
		{"itl.p99>1ms", level(400, 0, verdict(metric.Degraded, late)), "itl is INVALID (late reads)", "", true},
		{"stalled_share>0.5", level(400, 0, verdict(metric.Degraded, late)), "stalled_share is INVALID (late reads)", "", false},
		{"ttft.p99>1ms", level(400, 0, verdict(metric.Degraded, late)), "", "", true},
		{"ttft.mean>1ms", level(400, 0, verdict(metric.Predicted)), "", "", false},
		{"ttft.mean>1ms", level(400, 0, verdict(metric.Unjudged)), "", "", false},

		{"ttft.mean>1ms", level(0, 0, nil), "", "ttft.mean needs 10 requests, the level has 0", false},
		{"ttft.mean>1ms", level(9, 0, nil), "", "ttft.mean needs 10 requests, the level has 9", false},
		{"ttft.mean>1ms", level(10, 0, nil), "", "", false},
		{"ttft.p50>1ms", level(9, 1, nil), "", "ttft.p50 needs 10 requests, the level has 9", false},
		{"ttft.p99>200ms", level(1, 0, nil), "", "ttft.p99 needs 100 requests, the level has 1", false},
		{"ttft.p99>200ms", level(99, 0, nil), "", "ttft.p99 needs 100 values, the level has 99", false},
		{"ttft.p99>99ms", level(99, 0, nil), "", "ttft.p99 needs 100 values, the level has 99", true},
		{"ttft.p99>99ms", level(9, 0, nil), "", "ttft.p99 needs 100 requests, the level has 9", false},
		{"ttft.p99<200ms", level(99, 0, nil), "", "ttft.p99 needs 100 values, the level has 99", false},
		{"ttft.p1>1ms", level(99, 0, nil), "", "ttft.p1 needs 100 values, the level has 99", false},
		{"itl.p99>200ms", level(2, 0, nil), "", "itl.p99 needs 100 requests, the level has 2", false},
		{"itl.p99>200ms", level(10, 0, nil), "", "", false},
		{"itl.p99.9>200ms", level(10, 0, nil), "", "itl.p99.9 needs 1000 values, the level has 500", false},
		{"output_throughput<1", level(9, 0, nil), "", "output_throughput needs 10 requests", false},
		{"failures>1%", level(99, 0, nil), "", "failures needs 100 requests, the level has 99", false},
		{"failures>1%", level(98, 1, nil), "", "failures needs 100 requests, the level has 99", false}, // probability 63 %
		{"failures>1%", level(18, 2, nil), "", "failures needs 100 requests, the level has 20", true},  // probability 1.7 %
		{"failures>1%", level(99, 1, nil), "", "", false},
		{"failures>0%", level(1, 0, nil), "", "", false},
		{"failures>0%", level(0, 1, nil), "", "", true},
		{"failures>0.1%", level(990, 9, nil), "", "failures needs 1000 requests, the level has 999", true},
		{"failures>+1%", level(9, 0, nil), "", "failures needs 10 requests, the level has 9", false},
	} {
		conditions := must.Get(metric.ParseConditions(c.condition))(t)
		q := &conditions[0]
		unusable, few, certain := q.Unusable(c.s), q.TooFew(c.s), q.Certain(c.s)
		if !strings.HasPrefix(unusable, c.unusable) || (unusable == "") != (c.unusable == "") || !strings.Contains(few, c.few) || (few == "") != (c.few == "") || certain != c.certain {
			t.Errorf("%s of %d + %d requests: unusable %q, few %q, certain %v; want %q, %q, %v", c.condition, c.s.Completed, c.s.Failed, unusable, few, certain, c.unusable, c.few, c.certain)
		}
	}
}
