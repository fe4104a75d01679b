package metric

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/stat"
)

// Repeats compare several runs of one load: how far the runs differ, and whether they differ by more
// than their confidence intervals.
type Repeats struct {
	Runs    int      `json:"runs"`
	Spreads []Spread `json:"spreads"` // throughput, then the latencies shown in the reports
}

// A Spread is the variation of one figure between runs of one load.
type Spread struct {
	Figure   string   `json:"figure"` // as in "p99 ttft"
	Unit     string   `json:"unit"`
	Runs     int      `json:"runs"` // runs with this figure
	Mean     float64  `json:"mean"`
	Std      float64  `json:"std"` // sample standard deviation between runs
	Min      float64  `json:"min"`
	Max      float64  `json:"max"`
	Interval Interval `json:"interval"` // of Mean
	Within   *float64 `json:"within"`   // standard deviation estimated from the intervals of single runs; nil if the runs have no intervals
	Larger   Larger   `json:"larger,omitempty"`
}

// Larger says which variation is larger: between runs or within a run.
type Larger string

// Within is correct if random variation within a run explains all differences.
const (
	Between Larger = "between"
	Within  Larger = "within"
)

// Repeated returns the spread of runs of one load, or nil if there is only one.
func Repeated(runs []*Summary) *Repeats {
	if len(runs) < 2 {
		return nil
	}
	out := &Repeats{Runs: len(runs)}
	add := func(figure string, unit Unit, of func(*Summary) (value float64, in *Interval, ok bool)) {
		if s := spreadOf(runs, of); s != nil {
			s.Figure, s.Unit = figure, string(unit)
			out.Spreads = append(out.Spreads, *s)
		}
	}
	rate := func(figure string, unit Unit, of func(*Throughput) *float64) {
		add(figure, unit, func(s *Summary) (float64, *Interval, bool) {
			if s.Throughput == nil || of(s.Throughput) == nil {
				return 0, nil, false
			}
			return *of(s.Throughput), nil, true
		})
	}
	rate("requests", "req/s", func(t *Throughput) *float64 { return &t.RequestsPerS })
	rate("good requests", "req/s", func(t *Throughput) *float64 { return t.GoodPerS })
	rate("output", TokensPerSec, func(t *Throughput) *float64 { return &t.OutputTokensPerS })
	for i := range Sections {
		section := &Sections[i]
		if !runs[0].Config.Shows(section) {
			continue
		}
		statistic := func(name string, of func(*Stats) (float64, *Interval)) {
			add(name+" "+section.Label, section.Unit, func(s *Summary) (float64, *Interval, bool) {
				stats := s.Dist(section.Metric).Stats
				if stats == nil {
					return 0, nil, false
				}
				value, in := of(stats)
				return value, in, true
			})
		}
		statistic("mean", func(s *Stats) (float64, *Interval) { return s.Mean, s.MeanInterval })
		statistic("median", func(s *Stats) (float64, *Interval) { return s.Median, s.MedianInterval })
		for _, p := range runs[0].Config.Percentiles {
			if p != 50 {
				statistic("p"+strconv.FormatFloat(p, 'f', -1, 64), func(s *Stats) (float64, *Interval) { return s.Percentile(p), s.At(p).Interval })
			}
		}
	}
	return out
}

// spreadOf returns nil if fewer than two runs have the figure.
func spreadOf(runs []*Summary, of func(*Summary) (float64, *Interval, bool)) *Spread {
	var values []float64
	within, counted := 0.0, 0
	for _, s := range runs {
		value, in, ok := of(s)
		if !ok {
			continue
		}
		values = append(values, value)
		if in != nil && in.Low != nil {
			half := in.halfWidth(value) / stat.Normal975
			within, counted = within+half*half, counted+1
		}
	}
	if len(values) < 2 {
		return nil
	}
	sample := stat.New(values)
	n := float64(len(values))
	s := &Spread{Runs: len(values), Mean: sample.Mean(), Std: sample.Std() * math.Sqrt(n/(n-1)), Min: sample.Min(), Max: sample.Max()}
	half := stat.StudentQuantile(0.95, n-1) * s.Std / math.Sqrt(n)
	low, high := max(s.Mean-half, 0), s.Mean+half // all figures are times or rates
	s.Interval = Interval{Low: &low, High: &high, Effective: n}
	if counted > 0 {
		deviation := math.Sqrt(within / float64(counted))
		s.Within, s.Larger = &deviation, Within
		if s.Std > deviation*math.Sqrt(stat.VarianceRatio95(len(values)-1)) {
			s.Larger = Between
		}
	}
	return s
}

// Words says which variation is larger, within a run or between runs.
func (r *Repeats) Words() string {
	var between, within []string
	for _, s := range r.Spreads {
		switch s.Larger {
		case Between:
			between = append(between, s.Figure)
		case Within:
			within = append(within, s.Figure)
		}
	}
	switch {
	case len(between)+len(within) == 0:
		return "single runs have no confidence intervals, so use the spread between runs"
	case len(between) == 0:
		return "runs differ by no more than the interval of one run, so the difference is random variation and one longer run is as good as several"
	case len(within) == 0:
		return "runs differ by more than the interval of one run, so something changes between runs: trust the spread between runs, not a single run"
	}
	return fmt.Sprintf("runs differ by more than the interval of one run in %s: trust the spread between runs there; other differences are random variation", strings.Join(between, ", "))
}
