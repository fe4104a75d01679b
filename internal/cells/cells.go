// Package cells lays text out in the cells of a terminal: how wide it is, where
// to cut it, and what can be drawn with characters.
package cells

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"tacho/internal/visible"
)

// of is how many cells a character takes.
func of(r rune) int {
	switch {
	case r < 0x7f:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Width is how many cells a text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += of(r)
	}
	return n
}

// Cut is as much of a text as fits; what is cut ends in three dots.
func Cut(s string, most int) string {
	if Width(s) <= most {
		return s
	}
	const dots = "..."
	room, tail := most-len(dots), dots
	if room < len(dots) {
		room, tail = max(most, 0), ""
	}
	n := 0
	for i, r := range s {
		if n += of(r); n > room {
			return s[:i] + tail
		}
	}
	return s
}

// A Pen draws with block characters, or with those that every terminal has.
type Pen struct{ ASCII bool }

var (
	blocks = []rune(" ▁▂▃▄▅▆▇█")
	marks  = []rune(" .:-=+*#@")
)

func (p Pen) steps() []rune {
	if p.ASCII {
		return marks
	}
	return blocks
}

// Bar shows a share of the whole in so many cells.
func (p Pen) Bar(share float64, wide int) string {
	full, empty := "█", "░"
	if p.ASCII {
		full, empty = "#", "-"
	}
	n := min(max(int(share*float64(wide)), 0), wide)
	return strings.Repeat(full, n) + strings.Repeat(empty, wide-n)
}

// Spark shows the last values, in rows from the top down, so many cells wide and
// high. Zero is at the bottom and most at the top; where a value is not a number
// there is nothing.
func (p Pen) Spark(values []float64, wide, high int) []string {
	values = values[max(0, len(values)-max(wide, 0)):]
	most := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	steps := p.steps()
	each := len(steps) - 1 // in a row
	rows := make([]string, high)
	for i := range rows {
		var b strings.Builder
		for _, v := range values {
			level := 0
			switch {
			case math.IsNaN(v):
			case most > 0:
				level = max(int(math.Round(v/most*float64(each*high))), 1)
			default:
				level = 1
			}
			below := each * (high - 1 - i)
			b.WriteRune(steps[min(max(level-below, 0), each)])
		}
		rows[i] = b.String()
	}
	return rows
}

// A Style is how a piece of text is to look, as the number that selects it.
type Style string

// The styles. Colours are the terminal's own, so that they fit its background.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "1;31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// A Line is one line of a screen. What does not fit is cut, and what a terminal
// would obey is made visible.
type Line struct {
	Most   int // cells
	Colour bool
	used   int
	b      strings.Builder
}

// Add writes text at the end.
func (l *Line) Add(style Style, text string) *Line {
	text = Cut(visible.Line(text), l.Most-l.used)
	l.used += Width(text)
	if l.Colour && style != Plain && text != "" {
		text = "\x1b[" + string(style) + "m" + text + "\x1b[0m"
	}
	l.b.WriteString(text)
	return l
}

// To moves to a column, at least one cell ahead.
func (l *Line) To(column int) *Line { return l.Add(Plain, strings.Repeat(" ", max(column-l.used, 1))) }

// Right writes text so that it ends where the line does.
func (l *Line) Right(style Style, text string) *Line {
	return l.To(l.Most-Width(visible.Line(text))).Add(style, text)
}

// Left is how many cells are free.
func (l *Line) Left() int { return max(l.Most-l.used, 0) }

func (l *Line) String() string { return l.b.String() }
