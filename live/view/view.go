// Package view draws a snapshot of a run: as the lines of a screen, or as one line
// of a log. It only makes text; who prints it is none of its business.
package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tacho/internal/cells"
	"tacho/live"
	"tacho/metric"
)

// A Screen is what there is room for, and what it can show.
type Screen struct {
	Wide, High int
	Colour     bool
	Pen        cells.Pen
}

// The places of a frame.
const (
	margin  = 1
	names   = 11 // where values begin
	sparks  = 38 // where sparklines begin
	tall    = 40 // lines from which on sparklines have several rows
	reasons = 2  // lines that the reasons of the verdict have
)

// Frame is a snapshot as the lines of a screen: no more than it has, each no wider
// than it is. What is at one place stays there from frame to frame.
func (s Screen) Frame(at *live.Snapshot) []string {
	f := &frame{Screen: s, at: at}
	f.head()
	f.figures()
	f.verdict()
	left := s.High - len(f.lines)
	f.failures(min(max(left/3, 2), 8))
	notes := min(max((s.High-len(f.lines))/4, 1), 6)
	f.levels(s.High - len(f.lines) - notes)
	f.notes(s.High - len(f.lines))
	return f.lines[:min(len(f.lines), s.High)]
}

// A frame is being drawn.
type frame struct {
	Screen
	at    *live.Snapshot
	lines []string
}

// line begins a line.
func (f *frame) line() *cells.Line {
	l := &cells.Line{Most: max(f.Wide, 1), Colour: f.Colour}
	return l.Add(cells.Plain, strings.Repeat(" ", margin))
}

func (f *frame) put(l *cells.Line) { f.lines = append(f.lines, strings.TrimRight(l.String(), " ")) }

// fill adds empty lines until there are n.
func (f *frame) fill(n int) {
	for len(f.lines) < n {
		f.lines = append(f.lines, "")
	}
}

// head says what runs, and how far it is.
func (f *frame) head() {
	l := &f.at.Level
	number := fmt.Sprintf("level %d", l.Number)
	if l.Of >= l.Number {
		number += fmt.Sprintf(" of %d", l.Of)
	}
	about := &f.at.About
	var words []string
	for _, w := range []string{about.Model, about.Server, about.Dataset} {
		if w != "" {
			words = append(words, w)
		}
	}
	room := f.Wide - 2*margin - len("tacho  ") - len(number) - 1
	f.put(f.line().Add(cells.Bold, "tacho").Add(cells.Plain, "  "+cells.Cut(strings.Join(words, ", "), room)).Right(cells.Bold, number+" "))
	f.put(f.line().Add(cells.Cyan, loadWords(l)))
	f.progress()
	f.put(f.line())
}

// loadWords are the load of a level.
func loadWords(l *live.Level) string {
	if l.Name != "" {
		return l.Name
	}
	var words []string
	if l.Rate > 0 {
		words = append(words, number(l.Rate)+" requests/s")
	}
	if l.Concurrency > 0 {
		words = append(words, fmt.Sprintf("%d at a time", l.Concurrency))
	}
	if l.Sessions > 0 {
		words = append(words, whole(int64(l.Sessions))+" requests")
	}
	return strings.Join(words, ", ")
}

func (f *frame) progress() {
	s := f.at
	text := clock(s.AtS)
	if s.Share != nil {
		text = fmt.Sprintf("%3.0f %%  ", math.Floor(100**s.Share)) + text
	}
	switch {
	case s.Over && s.Doing != "":
		text = s.Doing
	case s.Over:
		text += ", over"
	case s.Waits():
		text += ", waiting for the last answers"
	case s.LeftS != nil:
		text += ", " + clock(*s.LeftS) + " left"
	}
	if s.RunLeftS != nil && *s.RunLeftS > *s.LeftS {
		text += " (of the run " + clock(*s.RunLeftS) + ")"
	}
	const room = 42 // for the longest text, so that the bar does not move
	l := f.line()
	if wide := min(f.Wide-2*margin-room, 100); s.Share != nil && wide >= 8 {
		l.Add(cells.Cyan, f.Pen.Bar(*s.Share, wide)).Add(cells.Plain, " ")
	}
	f.put(l.Add(cells.Plain, text))
}

// figures are the numbers, with their history.
func (f *frame) figures() {
	s, now := f.at, &f.at.Now
	rates := "sent " + number(now.SentPerS) + "/s, served " + number(now.ServedPerS) + "/s"
	if s.Level.Rate > 0 {
		rates = "asked " + number(s.Level.Rate) + "/s, " + rates
	}
	l := f.line().Add(cells.Plain, "Requests").To(names).Add(cells.Bold, rates)
	done := whole(s.Totals.Finished) + " done"
	if s.Level.Sessions > 0 {
		done = whole(s.Totals.Sessions) + " of " + whole(int64(s.Level.Sessions)) + " done"
	}
	l.Add(cells.Plain, ", "+done+", ")
	if s.Totals.Failed > 0 {
		l.Add(cells.Red, whole(s.Totals.Failed)+" FAILED")
	} else {
		l.Add(cells.Plain, "0 failed")
	}
	f.put(l)
	f.row("Tokens", number(now.TokensPerS)+" /s", func(p *live.Point) float64 { return p.TokensPerS })
	f.row("In flight", whole(s.Totals.InFlight()), func(p *live.Point) float64 { return float64(p.InFlight) })
	p99 := func(of func(*live.Point) *live.Figure) func(*live.Point) float64 {
		return func(p *live.Point) float64 { return known(of(p).P99) }
	}
	f.row("TTFT", spread(&now.TTFT), p99(func(p *live.Point) *live.Figure { return &p.TTFT }))
	f.row("ITL", spread(&now.ITL), p99(func(p *live.Point) *live.Figure { return &p.ITL }))
	f.row("Server", serverWords(now.Server), queueOf)
	f.put(f.line())
}

// queueOf is how many requests wait in the server, or else run there.
func queueOf(p *live.Point) float64 {
	if p.Server == nil {
		return math.NaN()
	}
	if p.Server.Queued != nil {
		return *p.Server.Queued
	}
	return known(p.Server.Running)
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// row is a figure with its history.
func (f *frame) row(name, value string, of func(*live.Point) float64) {
	high := 1
	if f.High >= tall {
		high = 3
	}
	var values []float64
	for i := range f.at.History {
		values = append(values, of(&f.at.History[i]))
	}
	for i, spark := range f.Pen.Spark(values, f.Wide-sparks-margin, high) {
		l := f.line()
		if i == high-1 {
			l.Add(cells.Plain, name).To(names).Add(cells.Bold, cells.Cut(value, sparks-names-1))
		}
		f.put(l.To(sparks).Add(cells.Cyan, spark))
	}
}

// soFar is a verdict on a level that is not over. Only the whole level can be VALID:
// most rules need its end.
func soFar(v metric.Severity) string {
	if v == metric.Valid {
		return "no trouble so far"
	}
	return string(v) + " so far"
}

// verdict is how far the figures can be trusted so far.
func (f *frame) verdict() {
	from := len(f.lines)
	v := &f.at.Verdict
	f.put(f.line().Add(cells.Plain, "Verdict").To(names).Add(severityStyle(v.Severity), soFar(v.Severity)))
	for i, r := range v.Reasons {
		if i == reasons {
			break
		}
		f.put(f.line().To(names).Add(cells.Plain, r.Text))
	}
	f.fill(from + 1 + reasons)
}

func severityStyle(s metric.Severity) cells.Style {
	switch s {
	case metric.Invalid:
		return cells.Red
	case metric.Degraded:
		return cells.Yellow
	case metric.Valid:
		return cells.Green
	}
	return cells.Plain
}

// failures are what went wrong, in so many lines.
func (f *frame) failures(n int) {
	from := len(f.lines)
	l := f.line().Add(cells.Plain, "Failures").To(names)
	if len(f.at.Failures) == 0 {
		f.put(l.Add(cells.Plain, "none"))
	}
	for i := range f.at.Failures {
		if i == n-1 {
			break
		}
		one := &f.at.Failures[i]
		cause := one.Cause
		if one.Status != 0 {
			cause += " " + strconv.Itoa(one.Status)
		}
		f.put(l.Add(cells.Red, whole(one.Count)+" x "+cause).Add(cells.Plain, ", the last at "+clock(one.LastS)+": "+one.Text))
		l = f.line().To(names)
	}
	f.fill(from + n)
}

// levels are those that are over, as many as there is room for.
func (f *frame) levels(n int) {
	from := len(f.lines)
	past := f.at.Past
	if n < 2 || len(past) == 0 {
		f.fill(from + n)
		return
	}
	past = past[max(0, len(past)-(n-1)):]
	wide := len("level")
	for i := range past {
		wide = max(wide, cells.Width(loadWords(&past[i].Level)))
	}
	wide = min(wide, max(f.Wide-60, 8))
	row := func(name string, columns ...any) *cells.Line {
		return f.line().Add(cells.Plain, cells.Cut(name, wide)).To(margin+wide+1).Add(cells.Plain, fmt.Sprintf("%8s%9s%11s%11s%8s  ", columns...))
	}
	f.put(row("level", "req/s", "tok/s", "TTFT p99", "ITL p99", "failed").Add(cells.Plain, "verdict"))
	for i := range past {
		p := &past[i]
		f.put(row(loadWords(&p.Level), number(p.RequestsPerS), number(p.TokensPerS), millis(p.TTFTP99), millis(p.ITLP99), strconv.Itoa(p.Failed)).
			Add(severityStyle(p.Verdict), string(p.Verdict)))
	}
	f.fill(from + n)
}

// notes are the last that was said, at the bottom.
func (f *frame) notes(n int) {
	notes := f.at.Notes
	for _, note := range notes[max(0, len(notes)-max(n, 0)):] {
		f.put(f.line().Add(cells.Dim, note))
	}
}

func serverWords(s *live.Server) string {
	if s == nil {
		return "says nothing"
	}
	var words []string
	for _, one := range []struct {
		v    *float64
		word string
	}{{s.Running, " run"}, {s.Queued, " queued"}} {
		if one.v != nil {
			words = append(words, whole(int64(*one.v))+one.word)
		}
	}
	if s.KVShare != nil {
		words = append(words, fmt.Sprintf("KV %.0f %%", 100**s.KVShare))
	}
	return strings.Join(words, ", ")
}

func spread(g *live.Figure) string {
	return "p50 " + millis(g.P50) + " p99 " + millis(g.P99)
}

// millis has three significant digits, and the unit that fits.
func millis(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 1000:
		return number(*v/1000) + " s"
	}
	return number(*v) + " ms"
}

// number has three significant digits, with commas between thousands.
func number(v float64) string {
	switch {
	case v >= 99.95:
		return whole(int64(math.Round(v)))
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// whole has commas between thousands.
func whole(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// clock is a time as minutes and seconds.
func clock(seconds float64) string {
	d := time.Duration(math.Round(min(seconds, 1e9))) * time.Second
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// Line is a snapshot as one line of a log.
func Line(at *live.Snapshot) string {
	l, now := &at.Level, &at.Now
	head := fmt.Sprintf("Level %d", l.Number)
	if l.Of >= l.Number { // a search does not know how many there will be
		head += fmt.Sprintf(" of %d", l.Of)
	}
	if l.Name != "" {
		head += " (" + l.Name + ")"
	}
	head += ", " + clock(at.AtS)
	waits := at.Waits()
	switch {
	case waits:
		head += ", waiting for the last answers"
	case at.LeftS != nil && *at.LeftS > 0:
		head += ", " + clock(*at.LeftS) + " left"
	}
	done := whole(at.Totals.Finished) + " done"
	if at.Share != nil && !waits { // of time it would be all of it
		done += fmt.Sprintf(" (%.0f %%)", math.Floor(100**at.Share))
	}
	words := []string{done, whole(at.Totals.InFlight()) + " in flight", whole(at.Totals.Failed) + " failed"}
	rates := "sent " + number(now.SentPerS) + "/s, served " + number(now.ServedPerS) + "/s, " + number(now.TokensPerS) + " tok/s"
	if l.Rate > 0 {
		rates = "asked " + number(l.Rate) + "/s, " + rates
	}
	words = append(words, rates, "TTFT "+spread(&now.TTFT), "ITL "+spread(&now.ITL))
	if now.Server != nil {
		words = append(words, "server "+serverWords(now.Server))
	}
	text := head + ": " + strings.Join(append(words, soFar(at.Verdict.Severity)), "; ")
	if len(at.Failures) > 0 {
		text += "; last failure: " + cells.Cut(at.Failures[0].Cause+": "+at.Failures[0].Text, 200)
	}
	return text
}

// PastLine is a level that is over, as one line of a log.
func PastLine(p *live.Past) string {
	name := loadWords(&p.Level)
	if p.Level.Name == "" {
		name = fmt.Sprintf("Level %d", p.Level.Number)
	}
	return fmt.Sprintf("%s is over after %s: %s req/s, %s tok/s, TTFT p99 %s, ITL p99 %s, %d failed; %s",
		name, clock(p.Seconds), number(p.RequestsPerS), number(p.TokensPerS), millis(p.TTFTP99), millis(p.ITLP99), p.Failed, p.Verdict)
}
