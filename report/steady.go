package report

import (
	"fmt"
	"strings"

	"tacho/metric"
)

// steady writes whether the run was in balance, and what it gave then.
func (p printer) steady(s *metric.Summary) {
	if s.Steady == nil {
		return
	}
	p.line(centre("Steady State", "-", blockWidth))
	if w := s.Steady.Window; w != nil {
		p.window(w)
	} else {
		p.fact("In balance:", "never: "+s.Steady.WhyNot)
	}
	if l := s.Steady.Little; l != nil {
		p.fact("In flight/rate x latency (Little's law):", fmt.Sprintf("%.2f / %.2f (%+.1f %%)", l.InFlight, l.InFlight*(1+l.Off), 100*l.Off))
	}
	if w := s.Steady.WarmUp; w != nil {
		word := "slower"
		if w.FirstMillis < w.RestMillis {
			word = "faster"
		}
		p.fact("Start:", fmt.Sprintf("the first %d requests were %s: mean %s %.2f ms, %.2f ms after them", w.Requests, word, strings.ToUpper(w.Metric), w.FirstMillis, w.RestMillis))
	}
}

func (p printer) window(w *metric.Window) {
	text := fmt.Sprintf("%.2f to %.2f, with %d requests (%.1f %%)", w.FromS, w.ToS, w.Requests, 100*w.Share)
	if w.Least > 0 {
		text += fmt.Sprintf(", %d and more in flight", w.Least)
	}
	p.fact("In balance (s):", text)
	p.fact("  request throughput (req/s):", fixed(&w.RequestsPerS))
	if w.OutputTokensPerS > 0 {
		p.fact("  output token throughput (tok/s):", fixed(&w.OutputTokensPerS))
	}
	for _, d := range w.Dists {
		if d.Stats != nil {
			p99 := d.Stats.Percentile(99)
			p.fact("  "+strings.ToUpper(d.Name)+" mean/median/p99 (ms):", fixed(&d.Stats.Mean)+" / "+fixed(&d.Stats.Median)+" / "+fixed(&p99))
		}
	}
}

// steadyColumns are empty where a level was not in balance.
func steadyColumns() []source[place] {
	of := func(name string, value func(w *metric.Window) float64) source[place] {
		return number("steady_"+name, func(p place) *float64 {
			if p.level.Summary.Steady == nil || p.level.Summary.Steady.Window == nil {
				return nil
			}
			v := value(p.level.Summary.Steady.Window)
			return &v
		})
	}
	out := []source[place]{
		of("start_s", func(w *metric.Window) float64 { return w.FromS }),
		of("end_s", func(w *metric.Window) float64 { return w.ToS }),
		of("share", func(w *metric.Window) float64 { return w.Share }),
		of("request_throughput", func(w *metric.Window) float64 { return w.RequestsPerS }),
		of("output_throughput", func(w *metric.Window) float64 { return w.OutputTokensPerS }),
		number("little_off", func(p place) *float64 {
			if p.level.Summary.Steady == nil || p.level.Summary.Steady.Little == nil {
				return nil
			}
			return &p.level.Summary.Steady.Little.Off
		}),
	}
	for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.E2EL} {
		out = append(out,
			of(columnName("mean_", m), func(w *metric.Window) float64 { s := statsOrZero(w.Dist(m).Stats); return s.Mean }),
			of(columnName("median_", m), func(w *metric.Window) float64 { s := statsOrZero(w.Dist(m).Stats); return s.Median }),
			of(columnName("p99_", m), func(w *metric.Window) float64 { s := statsOrZero(w.Dist(m).Stats); return s.Percentile(99) }))
	}
	return out
}
