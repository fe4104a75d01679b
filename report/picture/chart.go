package picture

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A series is a metric of one run over its loads.
type series struct {
	load     []float64
	p50, p99 []float64 // ms
	held     float64   // the recommended load; NaN if there is none
	limit    float64   // limit of the SLO in ms; 0 if there is none
	option   string
}

// chart draws the metric that breaks first over the load, or the percentiles of a run
// with one level. An INVALID run has no chart.
func (p *painter) chart() {
	m := p.metric()
	if m == nil {
		return
	}
	var all []series
	for i := range p.runs {
		if s := seriesOf(&p.runs[i], m); s != nil && (len(all) == 0 || all[0].option == s.option) {
			all = append(all, *s)
		} else {
			all = append(all, series{})
		}
	}
	if slices.ContainsFunc(all, func(s series) bool { return len(s.load) > 0 }) {
		p.overLoad(m, all)
		return
	}
	p.percentiles(m)
}

// metric returns the metric of the chart: the one that breaks first, those with a limit,
// TTFT or E2EL. It returns nil if nothing was concluded.
func (p *painter) metric() *metric.Metric {
	if len(p.runs) == 0 || !slices.ContainsFunc(p.runs, func(s summary) bool { return s.conclusion.Verdict != metric.Invalid }) {
		return nil
	}
	first := &p.runs[0]
	var names []string
	if b := first.conclusion.Breaks; b != nil {
		names = append(names, b.Metric)
	}
	for i := range first.run.Levels {
		for _, slo := range first.run.Levels[i].Summary.Config.Goodput {
			names = append(names, slo.Metric)
		}
	}
	for _, name := range append(names, metric.TTFT.Name, metric.E2EL.Name) {
		m := metric.Named(name)
		if m == nil || m.Unit != metric.Millis {
			continue
		}
		for i := range first.run.Levels {
			if first.run.Levels[i].Summary.Dist(m).Stats != nil {
				return m
			}
		}
	}
	return nil
}

// seriesOf returns a metric over the loads of a run, without INVALID levels. It returns
// nil if the levels are no series of loads.
func seriesOf(s *summary, m *metric.Metric) *series {
	var usable []outcome.Level
	origin := []int{}
	for i := range s.run.Levels {
		if l := &s.run.Levels[i]; l.Summary.Verdict.Severity != metric.Invalid && l.Summary.Dist(m).Stats != nil {
			usable, origin = append(usable, *l), append(origin, i)
		}
	}
	places, option, load := outcome.Ladder(usable)
	if len(places) == 0 {
		return nil
	}
	out := &series{option: option, held: math.NaN()}
	for i, place := range places {
		stats := usable[place].Summary.Dist(m).Stats
		p99 := stats.Percentile(99)
		if math.IsInf(load[i], 0) || !(stats.Median > 0) || !(p99 > 0) {
			continue
		}
		out.load, out.p50, out.p99 = append(out.load, load[i]), append(out.p50, stats.Median), append(out.p99, p99)
		if held := s.conclusion.Held; held != nil && origin[place] == held.Level {
			out.held = load[i]
		}
	}
	for _, slo := range s.run.Levels[0].Summary.Config.Goodput {
		if slo.Metric == m.Name && slo.Percentile == 0 {
			out.limit = slo.LimitMillis
		}
	}
	if len(out.load) == 0 {
		return nil
	}
	return out
}

// units are the names of the load options on an axis.
var units = map[string]string{"request-rate": "load, requests/s", "max-concurrency": "load, concurrent requests", "num-prompts": "load, requests in a burst"}

// A scale maps values to pixels.
type scale func(v float64) float64

func logScale(low, high, from, to float64) scale {
	return func(v float64) float64 {
		return from + (to-from)*math.Log(v/low)/math.Log(high/low)
	}
}

// logSpan is the ratio of loads from which the axis of loads is logarithmic.
const logSpan = 8

// overLoad draws p50 and p99 over the load, the SLO and the recommended load.
func (p *painter) overLoad(m *metric.Metric, all []series) {
	left, right, upper, lower := p.left+70, float64(width-margin-60), p.y+64, float64(height-110)
	loads, values := []float64{}, []float64{}
	for _, s := range all {
		loads, values = append(loads, s.load...), slices.Concat(values, s.p50, s.p99)
		if s.limit > 0 {
			values = append(values, s.limit)
		}
	}
	slices.Sort(loads)
	loads = slices.Compact(loads)
	if len(p.runs) > 1 {
		right -= 140 // room for the names of runs
	}
	low, high := slices.Min(values)/1.3, slices.Max(values)*1.3
	y := logScale(low, high, lower, upper)
	first, last := loads[0], loads[len(loads)-1]
	x := scale(func(v float64) float64 { return left + (right-left)*v/last })
	if first > 0 && last/first >= logSpan {
		x = logScale(first, last, left+30, right)
	}
	p.text(p.left, p.y+18, face{20, true}, ink, 0, strings.ToUpper(m.Name)+" over load")
	p.text(left-10, upper-12, face{16, false}, soft, 1, "ms")
	for _, tick := range roundTicks(low, high) {
		p.rect(left, y(tick), right-left, 1, faint)
		p.text(left-10, y(tick)+6, face{16, false}, soft, 1, metric.Brief(tick))
	}
	p.rect(left, lower, right-left, 1.5, soft)
	edge := math.Inf(-1)
	for _, v := range loads {
		label := metric.Brief(v)
		if half := p.width(face{16, false}, label) / 2; x(v)-half > edge+8 {
			p.text(x(v), lower+24, face{16, false}, soft, 0.5, label)
			edge = x(v) + half
		}
	}
	p.text(right, lower+50, face{16, false}, soft, 1, units[all[slices.IndexFunc(all, func(s series) bool { return s.option != "" })].option])
	p.limitLine(all, left, right, y)
	var ends []end
	for i, s := range all {
		if len(s.load) > 0 {
			ends = append(ends, p.lines(&p.runs[i], s, i, x, y, upper, lower)...)
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	free := math.Inf(-1) // names of lines do not overlap
	for _, e := range ends {
		free = max(free+20, e.y)
		p.text(e.x+14, free+6, face{16, true}, e.shade, 0, e.name)
	}
}

// An end is the end of a line, with its name.
type end struct {
	x, y  float64
	shade color.RGBA
	name  string
}

// limitLine draws the SLO if all runs share it.
func (p *painter) limitLine(all []series, left, right float64, y scale) {
	v := all[0].limit
	if v == 0 || slices.ContainsFunc(all, func(s series) bool { return s.limit != v }) {
		return
	}
	p.path([][2]float64{{left, y(v)}, {right, y(v)}}, 2.5, 12, limit)
	p.text(left+8, y(v)-8, face{16, true}, limit, 0, "SLO "+metric.Duration(v))
}

// lines draws p50 and p99 of one run, and the mark of its recommended load.
func (p *painter) lines(of *summary, s series, i int, x, y scale, upper, lower float64) (ends []end) {
	if !math.IsNaN(s.held) && len(p.runs) == 1 {
		at := x(s.held)
		p.rect(at-1, upper, 2, lower-upper, ink)
		text := "recommended: " + of.conclusion.Held.Name
		half := p.width(face{18, true}, text) / 2
		p.text(min(max(at, p.left+70+half), width-margin-half), upper-14, face{18, true}, ink, 0.5, text)
	}
	name := ""
	if len(p.runs) > 1 {
		name = p.clipped(face{16, true}, of.label(), 130) + " "
	}
	for k, values := range [][]float64{s.p50, s.p99} {
		shade := runs[i]
		if k == 1 && len(p.runs) == 1 {
			shade = tail
		}
		points := make([][2]float64, len(values))
		for j, v := range values {
			points[j] = [2]float64{x(s.load[j]), y(v)}
		}
		p.path(points, []float64{4, 3}[k], []float64{0, 7}[k], shade)
		for _, at := range points {
			p.dot(at[0], at[1], 7, shade)
			if k == 1 {
				p.dot(at[0], at[1], 4, paper)
			}
		}
		last := points[len(points)-1]
		ends = append(ends, end{last[0], last[1], shade, name + []string{"p50", "p99"}[k]})
	}
	return ends
}

// label is the short name of a run at the end of its lines.
func (s *summary) label() string {
	if s.run.Label != "" {
		return s.run.Label
	}
	return s.name()
}

// roundTicks returns 1, 2 and 5 times powers of ten between two values.
func roundTicks(low, high float64) (out []float64) {
	for ten := math.Pow(10, math.Floor(math.Log10(low))); ten <= high; ten *= 10 {
		for _, by := range []float64{1, 2, 5} {
			if v := by * ten; v >= low && v <= high {
				out = append(out, v)
			}
		}
	}
	return out
}

// percentiles draws the percentiles of a metric at one level of each run as bars.
func (p *painter) percentiles(m *metric.Metric) {
	type bar struct {
		name  string
		v     float64
		shade color.RGBA
	}
	var bars []bar
	for i := range p.runs {
		load := p.runs[i].conclusion.Headline.Load
		if load == nil {
			continue
		}
		stats, name := p.runs[i].run.Levels[load.Level].Summary.Dist(m).Stats, ""
		if stats == nil {
			continue
		}
		if len(p.runs) > 1 {
			name = p.runs[i].label() + " "
		}
		for _, one := range []bar{{"p50", stats.Median, runs[i]}, {"p99", stats.Percentile(99), runs[i]}, {"max", stats.Max, runs[i]}} {
			if one.v > 0 {
				bars = append(bars, bar{name + one.name, one.v, one.shade})
			}
		}
	}
	if len(bars) == 0 {
		return
	}
	most := slices.MaxFunc(bars, func(a, b bar) int { return int(math.Copysign(1, a.v-b.v)) }).v
	p.text(p.left, p.y+18, face{20, true}, ink, 0, strings.ToUpper(m.Name))
	step := min(110, (float64(height)-110-p.y-50)/float64(len(bars)))
	left, right := p.left+90, float64(width-margin-120)
	if len(p.runs) > 1 {
		left += 120
	}
	for i, one := range bars {
		y := p.y + 50 + float64(i)*step
		p.rect(left, y, max(2, (right-left)*one.v/most), 0.6*step, one.shade)
		p.text(left-14, y+0.3*step+7, face{20, false}, ink, 1, p.clipped(face{20, false}, one.name, left-p.left-14))
		p.text(left+(right-left)*one.v/most+10, y+0.3*step+7, face{20, true}, ink, 0, metric.Duration(one.v))
	}
}
