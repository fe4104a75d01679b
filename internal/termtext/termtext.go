// Package termtext lays out text in the cells of a terminal: it measures and cuts
// text, and draws bars, sparklines and plots with characters.
package termtext

import (
	"math"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/tacho-bench/tacho/internal/sanitize"
)

// Width returns the number of cells of a text without control characters. A character may have several code
// points, such as a letter with an accent or an emoji with a skin tone.
func Width(s string) int { return displaywidth.String(s) }

// Cut shortens a text to at most most cells. A shortened text ends in three dots if
// there is room for them.
func Cut(s string, most int) string {
	dots := "..."
	if most < 2*len(dots) {
		dots = ""
	}
	return displaywidth.TruncateString(s, max(most, 0), dots)
}

// A Pen draws with block characters, or with ASCII characters only.
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

// Bar draws share, from 0 to 1, as a bar of wide cells.
func (p Pen) Bar(share float64, wide int) string {
	full, empty := "█", "░"
	if p.ASCII {
		full, empty = "#", "-"
	}
	n := min(max(int(share*float64(wide)), 0), wide)
	return strings.Repeat(full, n) + strings.Repeat(empty, wide-n)
}

// Spark draws the last values as a sparkline, wide cells wide and high rows high, from
// the top row down. Zero is at the bottom and the maximum at the top. NaN is drawn as
// spaces.
func (p Pen) Spark(values []float64, wide, high int) []string {
	values = values[max(0, len(values)-max(wide, 0)):]
	most := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	steps := p.steps()
	each := len(steps) - 1 // steps in a row
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

// A Style is the parameter of the escape sequence for a text style.
type Style string

// The styles. Colours are from the terminal's palette, so they fit its background.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "1;31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// A Line is one line of a screen. Text that does not fit is cut, and control characters
// are escaped.
type Line struct {
	Most   int // cells
	Colour bool
	plain  string // without styles
	b      strings.Builder
}

// Add appends text.
func (l *Line) Add(style Style, text string) *Line {
	text = Cut(sanitize.Line(text), l.Most-Width(l.plain))
	if Width(l.plain+text) > l.Most {
		return l // the text begins with a mark that makes the character before it wider
	}
	l.plain += text
	if l.Colour && style != Plain && text != "" {
		text = "\x1b[" + string(style) + "m" + text + "\x1b[0m"
	}
	l.b.WriteString(text)
	return l
}

// To pads the line with spaces up to a column, with at least one space.
func (l *Line) To(column int) *Line {
	return l.Add(Plain, strings.Repeat(" ", max(column-Width(l.plain), 1)))
}

// Right appends text at the right end of the line.
func (l *Line) Right(style Style, text string) *Line {
	return l.To(l.Most-Width(sanitize.Line(text))).Add(style, text)
}

// Left returns the number of free cells.
func (l *Line) Left() int { return max(l.Most-Width(l.plain), 0) }

func (l *Line) String() string { return l.b.String() }
