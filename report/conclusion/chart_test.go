package conclusion_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

func TestChartOf(t *testing.T) {
	const ok, bad, poor = metric.Valid, metric.Invalid, metric.Degraded
	for name, c := range map[string]struct {
		levels []tried
		want   *conclusion.Chart
	}{
		"no levels":          {nil, nil},
		"one usable load":    {[]tried{{1, 10, 50, 200, 0, ok}, {2, 20, 50, 200, 0, bad}}, nil},
		"the same load":      {[]tried{{1, 10, 50, 200, 0, ok}, {1, 20, 50, 200, 0, ok}}, nil},
		"an unknown latency": {[]tried{{1, 10, math.NaN(), 200, 0, ok}, {2, 20, 50, 200, 0, ok}}, nil},
		"by load, with SLO": {
			[]tried{{8, 80, 900, 200, 0.5, ok}, {1, 10, 50, 200, 1, ok}, {4, 40, 100, 200, 1, poor}, {2, 20, 70, 200, 1, bad}},
			&conclusion.Chart{
				Metric: metric.TTFT, Statistic: "p99", Unit: "concurrent requests", Loads: []float64{1, 4, 8}, Values: []float64{50, 100, 900},
				Verdicts: []metric.Severity{ok, poor, ok}, Limit: 500,
			},
		},
		"too few requests for a percentile": {
			[]tried{{1, 10, 50, 20, 0, ok}, {2, 20, 70, 200, 0, ok}},
			&conclusion.Chart{
				Metric: metric.TTFT, Statistic: "max", Unit: "concurrent requests", Loads: []float64{1, 2}, Values: []float64{50, 70},
				Verdicts: []metric.Severity{ok, ok},
			},
		},
	} {
		var run outcome.Run
		for _, l := range c.levels {
			run.Levels = append(run.Levels, l.level())
		}
		same := cmp.Comparer(func(a, b *metric.Metric) bool { return a == b })
		if diff := cmp.Diff(c.want, conclusion.ChartOf(&run), same); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
