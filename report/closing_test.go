package report

import (
	"slices"
	"testing"

	"tacho/metric"
	"tacho/outcome"
)

// A screen has three reasons at most. The worst are there, and the noise of the first
// level does not hide that the last one was cut, or that an agent was lost.
func TestReasonsAreInTheOrderOfTheRules(t *testing.T) {
	level := func(value string, severity metric.Severity, codes ...string) outcome.Level {
		l := outcome.Level{Setting: outcome.Setting{Value: value}}
		for _, code := range codes {
			l.Summary.Verdict.Reasons = append(l.Summary.Verdict.Reasons, metric.Reason{Code: code, Severity: severity, Text: code})
		}
		return l
	}
	got := reasonsAgainst([]outcome.Level{
		level("1", metric.Degraded, "lag-p99", "drift", "fewer-agents"),
		level("2", metric.Degraded, "interrupted", "drift"),
		level("3", metric.Invalid, "rate"),
	})
	want := []string{"INVALID at 3: rate.", "DEGRADED at 1: fewer-agents.", "DEGRADED at 2: interrupted.", "The whole report has 2 more."}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
