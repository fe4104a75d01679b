// Package view renders a snapshot of a run as the lines of a screen or as one line of
// a log. It returns text; the caller prints it.
package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/termtext"
)

// A Screen describes the size and the capabilities of a terminal, and what the user
// wants to see.
type Screen struct {
	Wide, High int
	Colour     bool
	Pen        termtext.Pen
	Keys       bool // the terminal sends keys
	Help       bool // show the keys instead of the verdict and what follows
	Histogram  bool // show the histograms on a small screen too, instead of the levels
	Pause      bool // the run pauses before the next level
}

// The layout of a frame.
const (
	margin   = 1
	names    = 11 // column of the values
	scales   = 37 // column of the largest value of a sparkline
	scale    = 9  // width of this value
	sparks   = scales + scale + 1
	spacious = 28 // screen height from which blank lines separate the parts
	tall     = 40 // screen height from which sparklines have two rows, and histograms are shown
	columns  = 8  // high is a histogram, with its title and its axis
)

// Frame renders a snapshot as lines that fit the screen. Each element keeps its position
// from frame to frame, except on a small screen with more levels than fit: there empty lines
// below the verdict and the failures are left to the levels.
func (s Screen) Frame(at *live.Snapshot) []string {
	f := &frame{Screen: s, at: at}
	f.head()
	f.figures()
	last := s.High
	if s.Keys {
		last--
	}
	if s.Help {
		f.help(last - len(f.lines))
	} else {
		f.rest(last)
	}
	f.lines = f.lines[:max(min(len(f.lines), last), 0)]
	if s.Keys {
		f.fill(last)
		f.put(f.keys())
	}
	return f.lines[:min(len(f.lines), s.High)]
}

// rest shows the parts below the figures, up to a line.
func (f *frame) rest(last int) {
	left := last - len(f.lines)
	reasons, failures := min(max(left/4, 2), 3), min(max(left/4, 2), 4)
	table := 0 // lines of the levels and of the last message
	if len(f.at.Past) > 0 {
		table = 2 + len(f.at.Past)
	}
	if f.High < spacious && table > left-1-reasons-failures { // the table needs the empty lines
		reasons = min(len(f.reasons()), reasons)
		failures = max(min(len(f.at.Failures), failures), 1)
	}
	f.verdict(reasons)
	f.failures(failures)
	shown := f.High >= tall || f.Histogram
	if shown {
		f.histograms()
	}
	free := last - len(f.lines)
	notes := min(max(free-len(f.at.Past)-2, free/4, 1), 6)
	if f.High < spacious {
		notes = min(notes, len(f.at.Notes))
	}
	if f.High >= tall || !shown {
		f.levels(last - len(f.lines) - notes)
	}
	f.notes(last - len(f.lines))
}

// A frame is a frame under construction.
type frame struct {
	Screen
	at    *live.Snapshot
	lines []string
}

// line starts a line.
func (f *frame) line() *termtext.Line {
	l := &termtext.Line{Most: max(f.Wide, 1), Colour: f.Colour}
	return l.Add(termtext.Plain, strings.Repeat(" ", margin))
}

func (f *frame) put(l *termtext.Line) { f.lines = append(f.lines, strings.TrimRight(l.String(), " ")) }

// fill adds empty lines until there are n.
func (f *frame) fill(n int) {
	for len(f.lines) < n {
		f.lines = append(f.lines, "")
	}
}

// blank separates two parts if the screen has room.
func (f *frame) blank() {
	if f.High >= spacious {
		f.put(f.line())
	}
}

// head shows the target, the load and the progress.
func (f *frame) head() {
	l := &f.at.Level
	number := fmt.Sprintf("%s %d", l.Word(), l.Number)
	if l.Of >= l.Number {
		word := " of "
		if l.AtMost {
			word = " of at most "
		}
		number += word + integer(int64(l.Of))
	}
	about := &f.at.About
	first, second := nonEmpty(about.Model, about.Server, about.Dataset), ""
	room := f.Wide - 2*margin - len("tacho  ") - len(number) - 1
	if termtext.Width(first) > room { // the server moves to the next line
		first, second = nonEmpty(about.Model, about.Dataset), about.Server
	}
	f.put(f.line().Add(termtext.Bold, "tacho").Add(termtext.Plain, "  "+termtext.Cut(first, room)).Right(termtext.Bold, number+" "))
	load := f.line().Add(termtext.Cyan, loadWords(l))
	if room := load.Left() - 2; second != "" && room > 0 {
		load.Right(termtext.Plain, termtext.Cut(second, room)+" ")
	}
	f.put(load)
	f.progress()
	f.blank()
}

// nonEmpty joins the words that are not empty.
func nonEmpty(words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

// progress shows the share of the level that is done, and how long it and the run take.
func (f *frame) progress() {
	s := f.at
	most, wide := "", 52 // of long texts, so that the bar does not move
	if s.Level.AtMost {
		most, wide = "at most ", 68
	}
	laterLevels := s.RunLeftS != nil && s.LeftS != nil && *s.RunLeftS > *s.LeftS
	text := clock(s.AtS) + " elapsed"
	if s.Share != nil {
		text = fmt.Sprintf("%3.0f %%  ", math.Floor(100**s.Share)) + text
	}
	switch {
	case s.Over && s.Doing != "":
		text = s.Doing
	case s.Over:
		text += ", finished"
	case s.Draining() && laterLevels && s.Level.AtMost: // the rest of the line is long
		text += ", last answers"
	case s.Draining():
		text += ", waiting for the last answers"
	case s.LeftS != nil && laterLevels:
		text += ", " + s.Level.Word() + " " + most + clock(*s.LeftS) + " left"
	case s.LeftS != nil:
		text += ", " + most + clock(*s.LeftS) + " left"
	}
	if laterLevels {
		whole := ", run "
		if s.Level.Probe {
			whole = ", search "
		}
		text = strings.TrimSuffix(text, " left") + whole + most + clock(*s.RunLeftS) + " left"
	}
	l := f.line()
	if room := min(f.Wide-2*margin-wide, 100); s.Share != nil && room >= 8 {
		l.Add(termtext.Cyan, f.Pen.Bar(*s.Share, room)).Add(termtext.Plain, " ")
	}
	f.put(l.Add(termtext.Plain, text))
}
