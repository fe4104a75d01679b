package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
)

// A figure is a row of numbers with their history.
type figure struct {
	name, value string
	of          func(*live.Point) float64 // value of the history; NaN if unknown
	show        func(float64) string      // formats the largest value of the history
}

// figures shows the numbers with their history and its time axis.
func (f *frame) figures() {
	s, now := f.at, &f.at.Now
	f.requests()
	inMillis := func(v float64) string { return millis(&v) }
	whole := func(v float64) string { return integer(int64(v)) }
	p99 := func(of func(*live.Point) *live.Figure) func(*live.Point) float64 {
		return func(p *live.Point) float64 { return known(of(p).P99) }
	}
	points := append(append([]live.Point{}, s.Earlier...), s.History...)
	room := max(f.Wide-sparks-margin, 0)
	points = points[max(0, len(points)-room):]
	points = stretched(points, min(room/max(len(points), 1), 4)) // columns of a point, while the history is short
	for _, row := range []figure{
		{"Tokens", metric.Brief(now.TokensPerS) + " /s", func(p *live.Point) float64 { return p.TokensPerS }, metric.Brief},
		{"In flight", integer(s.Totals.InFlight()), func(p *live.Point) float64 { return float64(p.InFlight) }, whole},
		{"TTFT", spread(&now.TTFT), p99(func(p *live.Point) *live.Figure { return &p.TTFT }), inMillis},
		{"TPOT", spread(&now.TPOT), p99(func(p *live.Point) *live.Figure { return &p.TPOT }), inMillis},
		{"ITL", spread(&now.ITL), p99(func(p *live.Point) *live.Figure { return &p.ITL }), inMillis},
		{"E2EL", spread(&now.E2EL), p99(func(p *live.Point) *live.Figure { return &p.E2EL }), inMillis},
		{"Failed", failedWords(&s.Totals), func(p *live.Point) float64 { return p.FailedPerS }, func(v float64) string { return metric.Brief(v) + " /s" }},
		{"Server", queues(now.Server), queueOf, func(v float64) string { return queueWords(v, now.Server) }},
	} {
		f.row(&row, points)
	}
	f.axis(points)
	f.blank()
}

// stretched repeats each point.
func stretched(points []live.Point, times int) (out []live.Point) {
	for i := range points {
		for range max(times, 1) {
			out = append(out, points[i])
		}
	}
	return out
}

// requests shows the rates and the totals of requests.
func (f *frame) requests() {
	s, now := f.at, &f.at.Now
	rates := "sent " + metric.Brief(now.SentPerS) + "/s, served " + metric.Brief(now.ServedPerS) + "/s"
	if s.Level.Rate > 0 {
		rates = "target " + metric.Setting(s.Level.Rate) + "/s, " + rates
	}
	done := integer(s.Totals.Finished) + " done"
	if s.Level.Sessions > 0 {
		done = integer(s.Totals.Sessions) + " of " + integer(int64(s.Level.Sessions)) + " done"
	}
	l := f.line().Add(termtext.Plain, "Requests").To(names).Add(termtext.Bold, rates).Add(termtext.Plain, ", "+done)
	if s.Totals.Failed > 0 {
		l.Add(termtext.Plain, ", ").Add(termtext.Red, integer(s.Totals.Failed)+" FAILED")
	}
	f.put(l)
}

// failedWords counts the failed requests and their share.
func failedWords(t *live.Totals) string {
	if t.Failed == 0 || t.Finished == 0 {
		return integer(t.Failed)
	}
	return integer(t.Failed) + ", " + metric.Percent(float64(t.Failed)/float64(t.Finished))
}

// queueOf returns the requests queued in the server, or the running ones if the queue is
// unknown.
func queueOf(p *live.Point) float64 {
	if p.Server == nil {
		return math.NaN()
	}
	if p.Server.Queued != nil {
		return *p.Server.Queued
	}
	return known(p.Server.Running)
}

// queueWords says what queueOf returned, if there is room.
func queueWords(v float64, s *live.Server) string {
	text := integer(int64(v))
	word := " queued"
	if s != nil && s.Queued == nil && s.Running != nil {
		word = " run"
	}
	if len(text+word) > scale {
		return text
	}
	return text + word
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// row shows a figure with its history. The largest value is beside the top of the
// sparkline, and 0 beside the bottom of a high one.
func (f *frame) row(row *figure, points []live.Point) {
	high := 1
	if f.High >= tall {
		high = 2
	}
	most := math.NaN()
	values := make([]float64, len(points))
	for i := range points {
		values[i] = row.of(&points[i])
		if v := values[i]; !math.IsNaN(v) && (math.IsNaN(most) || v > most) {
			most = v
		}
	}
	for i, spark := range f.Pen.Spark(values, f.Wide-sparks-margin, high) {
		l := f.line()
		if i == 0 {
			style := termtext.Bold
			if row.name == "Failed" && f.at.Totals.Failed > 0 {
				style = termtext.Red
			}
			l.Add(termtext.Plain, row.name).To(names).Add(style, termtext.Cut(row.value, max(scales-names-1, 0)))
		}
		if f.Wide > sparks+margin {
			label := ""
			switch {
			case math.IsNaN(most):
			case i == 0:
				label = row.show(most)
			case i == high-1:
				label = "0"
			}
			label = termtext.Cut(label, scale)
			l.To(sparks-1-termtext.Width(label)).Add(termtext.Dim, label).To(sparks).Add(termtext.Cyan, spark)
		}
		f.put(l)
	}
}

// axis shows the time below the sparklines, with the first column of each level, the use
// of the KV cache, and how old the metrics of the server are.
func (f *frame) axis(points []live.Point) {
	l := f.line()
	if s := f.at.Now.Server; s != nil {
		age, style := "", termtext.Dim
		if s.AgeS != nil {
			age = "read " + metric.Brief(*s.AgeS) + " s ago"
			if *s.AgeS >= staleS {
				style = termtext.Yellow
			}
		}
		cache := cacheWords(s)
		if age != "" && cache != "" {
			cache += ", "
		}
		l.To(names).Add(termtext.Bold, cache).Add(style, termtext.Cut(age, max(scales-names-1-len(cache), 0)))
	}
	if f.Wide-sparks-margin >= len(points) && len(points) > 0 {
		l.To(sparks).Add(termtext.Dim, f.timeline(points))
	}
	f.put(l)
}

// timeline is the axis of the sparklines.
func (f *frame) timeline(points []live.Point) string {
	line, mark := "─", "┬"
	if f.Pen.ASCII {
		line, mark = "-", "+"
	}
	cells := make([]string, len(points))
	for i := range points {
		cells[i] = line
		if i > 0 && points[i].Level != points[i-1].Level {
			cells[i] = mark
		}
	}
	ticks := 1 // distinct points
	for i := range points[1:] {
		if points[i].AtS != points[i+1].AtS || points[i].Level != points[i+1].Level {
			ticks++
		}
	}
	from := fmt.Sprintf("-%.0f s ", float64(ticks)*live.Period.Seconds())
	const to = " now"
	if len(points) >= len(from)+len(to) {
		return from + strings.Join(cells[len(from):len(cells)-len(to)], "") + to
	}
	return strings.Join(cells, "")
}

// staleS is the age in seconds from which metrics of the server are marked. They are
// read every second unless --metrics-interval says otherwise.
const staleS = 5
