package report

import (
	"slices"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A screen shows at most three reasons, worst first. Noise at the first level does not
// hide that the last level was interrupted or that an agent was lost.
func TestReasonsAreInTheOrderOfTheRules(t *testing.T) {
	level := func(value string, severity metric.Severity, codes ...string) outcome.Level {
		l := outcome.Level{Setting: outcome.Setting{Value: value}}
		for _, code := range codes {
			l.Summary.Verdict.Reasons = append(l.Summary.Verdict.Reasons, metric.Reason{Code: code, Severity: severity, Text: code})
		}
		return l
	}
	got := Doubts("", []outcome.Level{
		level("1", metric.Degraded, "lag-p99", "drift", "fewer-agents"),
		level("2", metric.Degraded, "interrupted", "drift"),
		level("3", metric.Invalid, "rate"),
	})
	want := []string{"INVALID at 3: rate.", "DEGRADED at 1: fewer-agents.", "DEGRADED at 2: interrupted.", "2 more in the full report."}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	overloaded := []outcome.Level{level("1", metric.Degraded, metric.QueueGrowth), level("2", metric.Degraded, "drift", metric.QueueGrowth)}
	if got, want := Doubts("probe", overloaded), []string{"DEGRADED at probe 2: drift."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q, because a search overloads the server", got, want)
	}
}
