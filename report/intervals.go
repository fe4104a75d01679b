package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// warningWords explain the warnings of intervals.
var warningWords = map[stat.Warning]string{
	stat.TooFew:     "too few values",
	stat.Correlated: "effective sample size too small",
	stat.Unsteady:   "no steady state",
	stat.Offered:    "set by the offered load",
	stat.Burst:      "requests were sent in a burst or in few waves, so only repeated runs give intervals (--repeat)",
}

// intervals writes the confidence interval of each figure of the classic block in the
// steady state. If all figures lack an interval for the same reason, it writes one line.
func (p *printer) intervals(s *metric.Summary) {
	figures := intervalFigures(s)
	if p.brief {
		figures = slices.DeleteFunc(figures, func(f intervalFigure) bool { return f.Warning != "" || !f.tail })
	}
	if len(figures) == 0 {
		return
	}
	reasons := map[stat.Warning]bool{}
	for _, f := range figures {
		reasons[f.Warning] = true
	}
	p.section("95 % Confidence Intervals")
	if first := figures[0].Warning; len(reasons) == 1 && first != "" {
		text := notMeasured + ": " + warningWords[first]
		if s.Steady != nil && first == stat.Unsteady && s.Steady.WhyUnsettled != s.Steady.WhyNot {
			text += ". " + sentence(s.Steady.WhyUnsettled) // WhyNot is in the next block
		}
		p.fact("All metrics above:", text)
		return
	}
	if s.Steady != nil && s.Steady.Settled != nil && !p.brief {
		p.settled(s.Steady.Settled)
	}
	for _, f := range figures {
		p.fact(f.label+" (ms):", intervalWords(f.Interval, f.n))
	}
}

// An intervalFigure is a figure of the classic block with its interval.
type intervalFigure struct {
	label string
	n     int
	tail  bool // of the highest percentile
	*metric.Interval
}

// intervalFigures returns the figures that may have an interval.
func intervalFigures(s *metric.Summary) (figures []intervalFigure) {
	add := func(label string, n int, tail bool, in *metric.Interval) {
		if in != nil {
			figures = append(figures, intervalFigure{label, n, tail, in})
		}
	}
	for i := range metric.Sections {
		section := &metric.Sections[i]
		d := s.Dist(section.Metric)
		if !s.Config.Shows(section) || d.Stats == nil {
			continue
		}
		add("Mean "+section.Label, d.N, false, d.Stats.MeanInterval)
		add("Median "+section.Label, d.N, false, d.Stats.MedianInterval)
		for _, v := range s.Config.Percentiles {
			if v == 50 {
				continue // the median
			}
			add("P"+percentileWord(v)+" "+section.Label, d.N, v == slices.Max(s.Config.Percentiles), d.Stats.At(v).Interval)
		}
	}
	return figures
}

// settled writes the time span of the intervals and the throughput in it.
func (p *printer) settled(s *metric.Settled) {
	p.fact("Steady state (s):", fmt.Sprintf("%s to %s, %d requests; value (interval)", fixed(&s.FromS), fixed(&s.ToS), s.Requests))
	rate := func(label string, in *metric.Interval) {
		switch {
		case *in.Value == 0:
		case in.Warning != "":
			p.fact(label, fixed(in.Value)+" (no interval: "+warningWords[in.Warning]+")")
		default:
			p.fact(label, fixed(in.Value)+" ("+fixed(in.Low)+" to "+fixed(in.High)+")")
		}
	}
	rate("Request throughput (req/s):", s.RequestsInterval)
	if s.GoodInterval != nil {
		rate("Request goodput (req/s):", s.GoodInterval)
	}
	rate("Output token throughput (tok/s):", s.OutputTokensInterval)
}

func intervalWords(in *metric.Interval, n int) string {
	if in.Warning != "" {
		if in.Warning == stat.Correlated {
			return notMeasured + ": " + effectiveOf(in, n)
		}
		return notMeasured + ": " + warningWords[in.Warning]
	}
	text := fixed(in.Low) + " to " + fixed(in.High)
	if in.Value != nil {
		text = fixed(in.Value) + " (" + text + ")"
	}
	if math.Round(in.Effective) != float64(n) {
		text += ", " + effectiveOf(in, n)
	}
	return text
}

// effectiveOf states the effective sample size of n values.
func effectiveOf(in *metric.Interval, n int) string {
	return fmt.Sprintf("effective sample size %s of %d", metric.Brief(math.Round(in.Effective)), n)
}

// withInterval adds its interval to a column of a level.
func withInterval(column source[levelRow], m *metric.Metric, of func(*metric.Stats) *metric.Interval) source[levelRow] {
	value := column.of
	column.of = func(p levelRow) cell {
		out := value(p)
		if stats := p.level.Summary.Dist(m).Stats; stats != nil {
			out.Sure = of(stats)
		}
		return out
	}
	return column
}

// ranges writes the ranges of a prediction and the uncertainties in them.
func (p *printer) ranges(s *metric.Summary) {
	if len(s.Config.Ranges) == 0 {
		return
	}
	p.section("Prediction Ranges")
	if s.Config.Draws > 0 {
		p.fact("Parameter draws:", fmt.Sprint(s.Config.Draws))
	}
	if s.Config.RangesCover != "" {
		p.fact("90 % ranges cover:", s.Config.RangesCover)
	}
	for _, r := range s.Config.Ranges {
		p.fact(r.Name+":", fixed(&r.Value)+" ("+fixed(&r.Low)+" to "+fixed(&r.High)+")")
	}
}
