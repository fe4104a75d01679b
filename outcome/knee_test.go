package outcome

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tacho-bench/tacho/metric"
)

// climbing returns levels of rising rates, each served at the given rate with requests of one second.
func climbing(rates, served []float64) (out []Level) {
	for i, rate := range rates {
		seconds := rate * 10 / served[i]
		out = append(out, Level{
			Setting: Setting{Name: fmt.Sprintf("--request-rate %v", rate)},
			Summary: metric.Summary{
				Config: metric.Config{RequestRate: rate}, Counts: metric.Counts{DurationS: seconds}, Rate: &metric.Rate{AchievedPerS: &rate},
				Throughput: &metric.Throughput{RequestsPerS: served[i]}, Dists: metric.Dists{{Name: metric.E2EL.Name, Stats: &metric.Stats{Percentiles: []metric.Percentile{{P: 99, Value: 1000}}}}},
			},
		})
	}
	return out
}

func TestKnee(t *testing.T) {
	at := func(p *int) int {
		if p == nil {
			return -1
		}
		return *p
	}
	for name, c := range map[string]struct {
		levels     []Level
		good, next int
	}{
		"behind at the third":                    {climbing([]float64{1, 2, 4}, []float64{0.95, 1.9, 2.5}), 1, 2},
		"the last request takes a second":        {climbing([]float64{1, 2, 4}, []float64{10. / 11, 20. / 11.1, 40. / 11.2}), 2, -1},
		"the last of few requests takes long":    {lasting(climbing([]float64{1, 2, 4}, []float64{10. / 14, 20. / 14, 40. / 22}), 4000), 1, 2},
		"behind at once":                         {climbing([]float64{4, 8}, []float64{2.5, 2.5}), -1, -1},
		"in no order":                            {climbing([]float64{4, 1, 2}, []float64{2.5, 1, 2}), 2, 0},
		"one level is no curve":                  {climbing([]float64{4}, []float64{4}), -1, -1},
		"the queue grows, though much is served": {growing(climbing([]float64{1, 2, 4}, []float64{1, 2, 3.9}), 1), 0, 1},
	} {
		if good, next := Knee(c.levels); at(good) != c.good || at(next) != c.next {
			t.Errorf("%s: %d and %d, want %d and %d", name, at(good), at(next), c.good, c.next)
		}
	}
}

// A rate that is no number has no place among the rates.
func TestLadderLeavesOutInfinity(t *testing.T) {
	for _, c := range []struct {
		rates  []float64
		places []int
	}{
		{[]float64{2, math.Inf(1)}, nil}, {[]float64{math.Inf(1), 4, 2}, []int{2, 1}}, {[]float64{2, 4, math.NaN()}, nil}, {[]float64{4, 2}, []int{1, 0}},
	} {
		places, _, load := Ladder(climbing(c.rates, []float64{1, 1, 1}))
		if !slices.Equal(places, c.places) || slices.Contains(load, math.Inf(1)) {
			t.Errorf("%v: levels %v, loads %v", c.rates, places, load)
		}
	}
}

func growing(levels []Level, i int) []Level {
	levels[i].Summary.Verdict.Reasons = []metric.Reason{{Code: metric.QueueGrowth}}
	return levels
}

// lasting sets the duration of requests in milliseconds.
func lasting(levels []Level, millis float64) []Level {
	for i := range levels {
		levels[i].Summary.Dists[0].Stats.Percentiles[0].Value = millis
	}
	return levels
}
