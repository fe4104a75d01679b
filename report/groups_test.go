package report_test

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

func TestGroupTables(t *testing.T) {
	stats := func(mean float64) []metric.Dist {
		return []metric.Dist{{Name: "ttft", Unit: metric.Millis, N: 1, Stats: &metric.Stats{Mean: mean, Percentiles: []metric.Percentile{{P: 99, Value: mean * 2}}}}}
	}
	s := metric.Summary{
		Config:   metric.DefaultConfig(),
		Sessions: &metric.Sessions{Begun: 3, Completed: 1, CutShort: 2, Unsent: 4},
		Groups: []metric.Group{
			{By: "class", Value: "chat", Completed: 5, Input: 200, Cached: 50, Dists: stats(10)},
			{By: "turn", Value: "1", Completed: 3, Failed: 1, Input: 100, Dists: stats(12.5)},
			{By: "turn", Value: "2", Completed: 2, Dists: stats(7)},
		},
	}
	var b strings.Builder
	must.Do(t, text(&b, of(outcome.Level{Summary: s})))
	for _, want := range []string{
		"Started/completed/cut short:             3 / 1 / 2\n",
		"  turns never sent:                      4\n",
		"---------------------By class---------------------\n",
		"chat   5       0     200     25.00        0      10.00  20.00\n",
		"turn  ok  failed  in tok  cached %  out tok  mean TTFT  p99 TTFT\n" +
			"   1   3       1     100      0.00        0      12.50  25.00\n" +
			"   2   2       0       0       n/a        0       7.00  14.00\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// text renders r in the text format.
func text(b *strings.Builder, r *report.Report) error {
	for _, f := range report.Formats {
		if f.Name == "text" {
			return f.Render(b, r)
		}
	}
	return nil
}
