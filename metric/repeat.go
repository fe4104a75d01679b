package metric

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tacho/stat"
)

// Repeats are several runs of one load: how far they differ, and whether that is
// more than each of them says of itself.
type Repeats struct {
	Runs    int      `json:"runs"`
	Spreads []Spread `json:"spreads"` // throughput, then the latencies that the reports have
}

// A Spread is how far one figure differs between runs of one load.
type Spread struct {
	Figure   string   `json:"figure"` // as in "p99 ttft"
	Unit     string   `json:"unit"`
	Runs     int      `json:"runs"` // that have the figure
	Mean     float64  `json:"mean"`
	Std      float64  `json:"std"` // between runs, of n-1
	Min      float64  `json:"min"`
	Max      float64  `json:"max"`
	Interval Interval `json:"interval"` // of Mean
	Within   *float64 `json:"within"`   // what each run says of itself, by its own interval, as a deviation like Std; nil: it does not say
	Larger   Larger   `json:"larger,omitempty"`
}

// Larger is which of two is the larger: what lies between runs, or what a run
// says of itself.
type Larger string

// The answers. Within is right where all that differs is chance within a run.
const (
	Between Larger = "between"
	Within  Larger = "within"
)

// Repeated is how far runs of one load differ; nil where there is only one.
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

// spreadOf is nil where fewer than two runs have the figure.
func spreadOf(runs []*Summary, of func(*Summary) (float64, *Interval, bool)) *Spread {
	var values []float64
	within, told := 0.0, 0
	for _, s := range runs {
		value, in, ok := of(s)
		if !ok {
			continue
		}
		values = append(values, value)
		if in != nil && in.Low != nil {
			half := in.halfWidth(value) / stat.Normal975
			within, told = within+half*half, told+1
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
	if told > 0 {
		deviation := math.Sqrt(within / float64(told))
		s.Within, s.Larger = &deviation, Within
		if s.Std > deviation*math.Sqrt(stat.VarianceRatio95(len(values)-1)) {
			s.Larger = Between
		}
	}
	return s
}

// Words say which is larger, the interval within a run or the spread between
// runs; empty where no run says how sure it is.
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
		return "no run can tell how sure it is, so the spread between runs is all there is to go by"
	case len(between) == 0:
		return "runs differ by no more than the interval of one run says: what differs is chance, and a longer run tells as much as several"
	case len(within) == 0:
		return "runs differ by more than the interval of one run says: something changes from run to run, so trust the spread between runs and not one run"
	}
	return fmt.Sprintf("runs differ by more than the interval of one run says in %s: trust the spread between runs there; in the others what differs is chance", strings.Join(between, ", "))
}
