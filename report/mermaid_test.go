package report_test

import (
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// loads is a run of three loads with an SLO, one of them infinite and one DEGRADED.
func loads() *report.Report {
	var levels []outcome.Level
	for _, rate := range []string{"inf", "0.5", "12000"} {
		l := healthyStage()
		l.Name, l.Value = "--request-rate "+rate, rate
		l.Summary.Verdict.Severity = metric.Valid
		l.Summary.Config.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: 29.5}}
		levels = append(levels, l)
	}
	levels[0].Summary.Verdict.Severity = metric.Degraded
	return of(levels...)
}

// The Markdown of a run with several loads has a chart.
func TestMarkdownChart(t *testing.T) { golden(t, "chart.markdown", render(t, "markdown", loads())) }
