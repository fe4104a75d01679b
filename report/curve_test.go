package report_test

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// An INVALID level is a cross in the curves, and not on the Pareto front.
func TestInvalidLevelsAreCrossed(t *testing.T) {
	var levels []outcome.Level
	for i, rate := range []string{"5", "10", "20"} {
		l := healthyStage()
		l.Index, l.Name = i, "--request-rate "+rate
		levels = append(levels, l)
	}
	r := &report.Report{Runs: []outcome.Run{{Levels: levels}}}
	if text := render(t, report.Curve, r); strings.Contains(text, "✕") || strings.Contains(text, "INVALID") {
		t.Errorf("no level is INVALID:\n%s", text)
	}
	levels[2].Summary.Verdict = metric.Verdict{Severity: metric.Invalid}
	levels[2].Summary.Throughput = &metric.Throughput{RequestsPerS: 99, OutputTokensPerS: 9900}
	if text := render(t, report.Curve, r); strings.Count(text, "✕") != 2 || !strings.Contains(text, "by load (crosses: INVALID)") {
		t.Errorf("one level is INVALID:\n%s", text)
	}
	for line := range strings.Lines(render(t, report.Pareto, r)) {
		if strings.Contains(line, "INVALID") && strings.Contains(line, "*") {
			t.Errorf("an INVALID level is on the front: %s", line)
		}
	}
}
