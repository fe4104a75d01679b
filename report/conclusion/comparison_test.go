package conclusion_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// comparedLevel returns a level with a mean TTFT, and a mean TPOT of 10 ms.
func comparedLevel(rate, ttft float64, v metric.Severity) outcome.Level {
	value := fmt.Sprint(rate)
	l := outcome.Level{Setting: outcome.Setting{Name: "--request-rate " + value, Value: value, Rate: rate, Prompts: 100, Coordinates: outcome.Coordinates{{Name: "request-rate", Value: value}}}}
	l.Summary.Completed, l.Summary.Requests = 100, 100
	l.Summary.Verdict.Severity = v
	for name, mean := range map[string]float64{"ttft": ttft, "tpot": 10} {
		l.Summary.Dists = append(l.Summary.Dists, metric.Dist{Name: name, Unit: metric.Millis, N: 100, Stats: &metric.Stats{Mean: mean, Median: mean}})
	}
	return l
}

func TestOfComparison(t *testing.T) {
	repeats := func(v metric.Severity, rates []float64, means ...float64) (s compare.Side) {
		s.Name = "A"
		for _, m := range means {
			run := outcome.Run{About: outcome.About{Tool: "tacho", Version: "v1"}}
			for _, rate := range rates {
				run.Levels = append(run.Levels, comparedLevel(rate, m*rate, v))
			}
			s.Runs = append(s.Runs, run)
		}
		return s
	}
	one := []float64{1}
	for _, c := range []struct {
		name   string
		first  compare.Side
		second compare.Side
		want   string
	}{
		{"worse", repeats(metric.Valid, one, 100, 101, 99), repeats(metric.Valid, one, 150, 151, 149), "B is worse than A in TTFT mean by +50 % [+47.7, +52.3]. No significant difference in 1 of 2 tests."},
		{"better", repeats(metric.Valid, one, 100, 101, 99), repeats(metric.Valid, one, 50, 51, 49), "B is better than A in TTFT mean by -50 % [-52.3, -47.7]. No significant difference in 1 of 2 tests."},
		{"worse at the highest rate", repeats(metric.Valid, []float64{1, 2}, 100, 101, 99), repeats(metric.Valid, []float64{1, 2}, 150, 151, 149), "B is worse than A in TTFT mean by +50 % [+47.7, +52.3] at 1 req/s. No significant difference in 2 of 4 tests."},
		{"the same", repeats(metric.Valid, one, 100, 110, 90), repeats(metric.Valid, one, 101, 111, 91), "No significant difference between B and A in 2 tests. Largest measured difference: TTFT mean by +1 % [-21.7, +23.7]."},
		{"untested", repeats(metric.Valid, one, 100), repeats(metric.Valid, one, 150), "No difference between B and A can be tested (the result has no single requests). Measured: TTFT mean by +50 %."},
		{"degraded", repeats(metric.Degraded, one, 100, 101, 99), repeats(metric.Valid, one, 150, 151, 149), "DEGRADED: B is worse than A in TTFT mean by +50 % [+47.7, +52.3]. No significant difference in 1 of 2 tests."},
		{"invalid", repeats(metric.Invalid, one, 100, 101, 99), repeats(metric.Valid, one, 150, 151, 149), "No conclusion, because every level in common is INVALID: 1 req/s."},
		{"nothing in common", repeats(metric.Valid, one, 100), repeats(metric.Valid, []float64{2}, 100), "B and A have no level in common."},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.second.Name = "B"
			var o compare.Options
			for _, name := range []string{"ttft.mean", "tpot.mean"} {
				q := must.Get(metric.ParseQuantity(name))(t)
				o.Quantities = append(o.Quantities, q)
			}
			comparison, err := compare.Compare([]compare.Side{c.first, c.second}, o)
			if err != nil && !errors.Is(err, compare.ErrNoLevel) {
				t.Fatal(err)
			}
			if got := conclusion.OfComparison(comparison, 1); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	long := repeats(metric.Valid, one, 100, 101, 99)
	long.Name = strings.Repeat("x", 5000)
	comparison, err := compare.Compare([]compare.Side{long, long}, compare.Options{})
	if got := conclusion.OfComparison(comparison, 1); err != nil || len([]rune(got)) > 601 {
		t.Errorf("%d characters, %v", len(got), err)
	}
}

func TestLoadOf(t *testing.T) {
	level := func(name string, s outcome.Setting) outcome.Level {
		s.Name = name
		l := outcome.Level{Setting: s}
		l.Summary.Throughput = &metric.Throughput{RequestsPerS: 1}
		return l
	}
	rate := func(v float64) outcome.Level {
		return level(fmt.Sprintf("--request-rate %g", v), outcome.Setting{Rate: v})
	}
	alone := level("--request-rate inf --max-concurrency 1", outcome.Setting{Concurrency: 1})
	search := []outcome.Level{alone, rate(4), rate(64), rate(16), rate(22)}
	if got, want := conclusion.ByLoad(search), []int{0, 1, 3, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("probes of a search by load: %v, want %v", got, want)
	}
	for want, levels := range map[string][]outcome.Level{
		"":                       nil,
		"4 to 64 req/s":          search,
		"1 to 20 req/s":          {level("", outcome.Setting{Prompts: 20, Ramp: &outcome.Ramp{StartRPS: 1, EndRPS: 20}})},
		"1 to 6 req/s":           {rate(1), rate(6), rate(2)},
		"5 req/s":                {level("", outcome.Setting{Rate: 5, Prompts: 100})},
		"5 req/s, concurrency 8": {level("", outcome.Setting{Rate: 5, Concurrency: 8})},
		"burst of 1,000":         {level("", outcome.Setting{Prompts: 1000})},
		"concurrency 1 to 8":     {level("--max-concurrency 1", outcome.Setting{Concurrency: 1}), level("--max-concurrency 8", outcome.Setting{Concurrency: 8})},
		"1 req/s":                {rate(1), rate(1)}, // repeats
		"4 loads":                {level("--request-rate 1 --x 2", outcome.Setting{Rate: 1}), rate(2), rate(3), rate(4)},
	} {
		if got := conclusion.LoadOf(levels); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A run is failing if more than 1 % of the requests of every level failed.
func TestFailing(t *testing.T) {
	level := func(failed int) (l outcome.Level) {
		l.Summary.Completed, l.Summary.Failed, l.Summary.Requests = 100-failed, failed, 100
		return l
	}
	for failed, want := range map[[2]int]bool{{0, 50}: false, {1, 50}: false, {2, 50}: true, {100, 100}: true} {
		if got := conclusion.Failing([]outcome.Level{level(failed[0]), level(failed[1])}); got != want {
			t.Errorf("%d %% of the requests failed: %v", failed, got)
		}
	}
}
