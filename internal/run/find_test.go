package run

import (
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A probe is judged by the figures of its goals only. A doubt about other figures leaves it.
func TestVoidProbe(t *testing.T) {
	late := metric.Reason{Code: "late-reads", Severity: metric.Degraded, Figures: []string{"itl"}, Unusable: true, Text: "late"}
	for _, c := range []struct {
		slo    string
		reason metric.Reason
		want   string
	}{
		{"ttft:p99<500ms", late, ""},
		{"itl:p99<50ms", late, "itl is INVALID (late)"},
		{"ttft:p99<500ms,error<1%", metric.Reason{Code: "failures", Severity: metric.Invalid, Text: "failed"}, ""},
		{"ttft:p99<500ms", metric.Reason{Code: "unsent", Severity: metric.Invalid, Text: "never sent"}, "never sent"},
	} {
		goals := must.Get(search.ParseSLO(c.slo))(t)
		l := &outcome.Level{}
		l.Summary.Verdict = metric.JudgeBy(&metric.Summary{Config: metric.Config{Known: []metric.Reason{c.reason}}}, []string{})
		if got := void(goals, l); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.slo, c.reason.Code, got, c.want)
		}
	}
}
