package report

import (
	"fmt"

	"tacho/metric"
	"tacho/stat"
)

// doubts are the warnings of intervals, in words.
var doubts = map[stat.Warning]string{
	stat.TooFew:     "too few values",
	stat.Correlated: "too few that are independent",
	stat.Unsteady:   "no steady state",
	stat.Offered:    "the load sets it",
	stat.AtOnce:     "requests left at once or in few waves, so only repeated runs can tell (--repeat)",
}

// sure writes how sure each figure of the classic block is in the steady state. Where none of them
// can be told for one reason, that is one line.
func (p printer) sure(s *metric.Summary) {
	type figure struct {
		label string
		n     int
		*metric.Interval
	}
	var figures []figure
	reasons := map[stat.Warning]bool{}
	add := func(label string, n int, in *metric.Interval) {
		if in != nil {
			figures = append(figures, figure{label, n, in})
			reasons[in.Warning] = true
		}
	}
	for i := range metric.Sections {
		section := &metric.Sections[i]
		d := s.Dist(section.Metric)
		if !s.Config.Shows(section) || d.Stats == nil {
			continue
		}
		add("Mean "+section.Label, d.N, d.Stats.MeanInterval)
		add("Median "+section.Label, d.N, d.Stats.MedianInterval)
		for _, v := range s.Config.Percentiles {
			if v == 50 {
				continue // the median
			}
			add("P"+percentileWord(v)+" "+section.Label, d.N, d.Stats.At(v).Interval)
		}
	}
	if len(figures) == 0 {
		return
	}
	p.line(centre("How Sure: 95 % Intervals", "-", blockWidth))
	if first := figures[0].Warning; len(reasons) == 1 && first != "" {
		text := notMeasured + ": " + doubts[first]
		if s.Steady != nil && first == stat.Unsteady {
			text += ": " + s.Steady.WhyUnsettled
		}
		p.fact("All of the above:", text)
		return
	}
	if s.Steady != nil && s.Steady.Settled != nil {
		p.settled(s.Steady.Settled)
	}
	for _, f := range figures {
		p.fact(f.label+" (ms):", intervalWords(f.Interval, f.n))
	}
}

// settled writes what intervals are of, and the throughput in that time.
func (p printer) settled(s *metric.Settled) {
	p.fact("Steady state alone (s):", fmt.Sprintf("%.2f to %.2f, with %d requests; value (interval)", s.FromS, s.ToS, s.Requests))
	rate := func(label string, in *metric.Interval) {
		switch {
		case *in.Value == 0:
		case in.Warning != "":
			p.fact(label, fixed(in.Value)+" (no interval: "+doubts[in.Warning]+")")
		default:
			p.fact(label, fixed(in.Value)+" ("+fixed(in.Low)+" to "+fixed(in.High)+")")
		}
	}
	rate("Request throughput (req/s):", s.RequestsInterval)
	rate("Output token throughput (tok/s):", s.OutputTokensInterval)
}

func intervalWords(in *metric.Interval, n int) string {
	if in.Warning != "" {
		text := notMeasured + ": " + doubts[in.Warning]
		if in.Warning == stat.Correlated {
			text += fmt.Sprintf(" (%d are worth %.0f)", n, in.Effective)
		}
		return text
	}
	text := fixed(in.Low) + " to " + fixed(in.High)
	if in.Value != nil {
		text = fixed(in.Value) + " (" + text + ")"
	}
	if rounded := fmt.Sprintf("%.0f", in.Effective); rounded != fmt.Sprint(n) {
		text += fmt.Sprintf(", %d values are worth %s", n, rounded)
	}
	return text
}

// sure is a column of a level with its interval, where there is one.
func sure(column source[place], m *metric.Metric, of func(*metric.Stats) *metric.Interval) source[place] {
	value := column.of
	column.of = func(p place) cell {
		out := value(p)
		if stats := p.level.Summary.Dist(m).Stats; stats != nil {
			out.Sure = of(stats)
		}
		return out
	}
	return column
}

// ranges writes the ranges of a prediction, and what they allow for.
func (p printer) ranges(s *metric.Summary) {
	if len(s.Config.Ranges) == 0 {
		return
	}
	p.line(centre("How Sure the Model Is", "-", blockWidth))
	if s.Config.Draws > 0 {
		p.fact("Draws of its parameters:", fmt.Sprint(s.Config.Draws))
	}
	if s.Config.RangesCover != "" {
		p.fact("90 % ranges cover:", s.Config.RangesCover)
	}
	for _, r := range s.Config.Ranges {
		p.fact(r.Name+":", fmt.Sprintf("%.2f (%.2f to %.2f)", r.Value, r.Low, r.High))
	}
}
