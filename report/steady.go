package report

import (
	"fmt"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// steady writes the steady window of the run and the metrics in it.
func (p *printer) steady(s *metric.Summary) {
	if s.Steady == nil {
		return
	}
	p.section("Steady State")
	switch w := s.Steady.Window; {
	case w == nil:
		p.detail("Steady window:", "none. "+sentence(s.Steady.WhyNot))
	case !p.brief:
		p.window(w)
	}
	if l := s.Steady.Little; l != nil {
		p.detail("In flight measured/expected (Little):", fixed(&l.InFlight)+" / "+fixed(new(l.InFlight*(1+l.Off)))+" ("+metric.Signed(100*l.Off)+"%"+")")
	}
	if w := s.Steady.WarmUp; w != nil {
		p.fact("Warm-up:", w.Text())
	}
}

func (p *printer) window(w *metric.Window) {
	text := fmt.Sprintf("%s to %s, %d requests (%s)", fixed(&w.FromS), fixed(&w.ToS), w.Requests, metric.Percent(w.Share))
	if w.Least > 0 {
		text += fmt.Sprintf(", at least %d in flight", w.Least)
	}
	p.fact("Steady window (s):", text)
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

// steadyColumns are empty for a level without a steady window.
func steadyColumns() []source[levelRow] {
	of := func(name string, value func(w *metric.Window) float64) source[levelRow] {
		return number("steady_"+name, func(p levelRow) *float64 {
			if p.level.Summary.Steady == nil || p.level.Summary.Steady.Window == nil {
				return nil
			}
			v := value(p.level.Summary.Steady.Window)
			return &v
		})
	}
	out := []source[levelRow]{
		of("start_s", func(w *metric.Window) float64 { return w.FromS }),
		of("end_s", func(w *metric.Window) float64 { return w.ToS }),
		of("share", func(w *metric.Window) float64 { return w.Share }),
		of("request_throughput", func(w *metric.Window) float64 { return w.RequestsPerS }),
		of("output_throughput", func(w *metric.Window) float64 { return w.OutputTokensPerS }),
		number("little_off", func(p levelRow) *float64 {
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
