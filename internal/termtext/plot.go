package termtext

import (
	"math"
	"strings"
)

// A Plot is a curve through points from left to right.
type Plot struct {
	Title string
	X, Y  []float64
	Off   []bool               // points that are no part of the curve, drawn as crosses; nil means none
	Mark  *float64             // position of the vertical mark; nil draws no mark
	Name  string               // label of the mark
	Show  func(float64) string // formats a value of Y for the axis
	ShowX func(float64) string
}

// finite returns the plot without points and marks that have no place on an axis, such as an infinite load.
func (c *Plot) finite() *Plot {
	out := *c
	out.X, out.Y, out.Off = nil, nil, nil
	for i := range c.X {
		if !math.IsNaN(c.X[i]-c.X[i]) && !math.IsNaN(c.Y[i]-c.Y[i]) {
			out.X, out.Y, out.Off = append(out.X, c.X[i]), append(out.Y, c.Y[i]), append(out.Off, c.Off != nil && c.Off[i])
		}
	}
	if c.Mark != nil && math.IsInf(*c.Mark, 0) {
		out.Mark = nil
	}
	return &out
}

// Plot draws the finite points of a curve with title and axes, wide cells wide and high cells high. It
// returns nil if the curve does not fit.
func (p Pen) Plot(c *Plot, wide, high int) []string {
	c = c.finite()
	if len(c.X) == 0 {
		return nil
	}
	x, y := newAxis(c.X, 10, false), newAxis(c.Y, 30, true)
	top, bottom := c.Show(y.high), c.Show(y.low)
	label := max(Width(top), Width(bottom))
	columns, rows := wide-label-2, high-3
	if columns < 8 || rows < 3 || math.IsInf(x.high-x.low, 0) || math.IsInf(y.high-y.low, 0) {
		return nil
	}
	grid := make([][]rune, rows)
	for i := range grid {
		grid[i] = []rune(strings.Repeat(" ", columns))
	}
	at := func(i int) (column, row int) {
		return int(math.Round(x.position(c.X[i]) * float64(columns-1))), rows - 1 - int(math.Round(y.position(c.Y[i])*float64(rows-1)))
	}
	point, off, between, mark, corner, line, side := '●', '✕', '·', '┊', "└", "─", "│"
	if p.ASCII {
		point, off, between, mark, corner, line, side = 'o', 'x', '.', ':', "+", "-", "|"
	}
	below := strings.Repeat(line, columns)
	labels := x.labels(c, columns)
	if c.Mark != nil {
		column := int(math.Round(min(max(x.position(*c.Mark), 0), 1) * float64(columns-1)))
		for i := range grid {
			grid[i][column] = mark
		}
		labels = c.markLabel(columns, column)
	}
	c.draw(grid, at, point, off, between)
	title := c.Title
	if y.logs {
		title += " (log axis)"
	}
	out := []string{Cut(title, wide)}
	for i, row := range grid {
		text := ""
		switch i {
		case 0:
			text = top
		case rows - 1:
			text = bottom
		}
		out = append(out, strings.Repeat(" ", label-Width(text))+text+" "+side+string(row))
	}
	pad := strings.Repeat(" ", label+1)
	return append(out, pad+corner+below, pad+" "+labels)
}

// draw puts the points and the lines between them into the grid. Points that are off the curve have no lines.
func (c *Plot) draw(grid [][]rune, at func(int) (column, row int), point, off, between rune) {
	last := -1 // the previous point of the curve
	for i := range c.X {
		if c.Off[i] {
			continue
		}
		c0, r0 := at(max(last, 0))
		c1, r1 := at(i)
		if last < 0 {
			c0 = c1
		}
		last = i
		for k := c0 + 1; k < c1; k++ {
			grid[r0+int(math.Round(float64((r1-r0)*(k-c0))/float64(c1-c0)))][k] = between
		}
	}
	for i := range c.X {
		column, row := at(i)
		grid[row][column] = point
		if c.Off[i] {
			grid[row][column] = off
		}
	}
}

// labels returns the line below the X axis with its two ends.
func (a *axis) labels(c *Plot, columns int) string {
	left, right := c.ShowX(a.low), c.ShowX(a.high)
	return left + strings.Repeat(" ", max(columns-Width(left)-Width(right), 1)) + right
}

// markLabel returns the line below the X axis with its two ends and the label of the
// mark.
func (c *Plot) markLabel(columns, column int) string {
	text := c.ShowX(*c.Mark) + " " + c.Name
	left, right := c.ShowX(c.X[0]), c.ShowX(c.X[len(c.X)-1])
	start := min(max(column-Width(text)/2, 0), max(columns-Width(text), 0))
	if start > Width(left) {
		text = left + strings.Repeat(" ", start-Width(left)) + text
	} else {
		text = strings.Repeat(" ", start) + text
	}
	if room := columns - Width(text) - Width(right); room > 0 {
		text += strings.Repeat(" ", room) + right
	}
	return text
}

// An axis maps values to positions.
type axis struct {
	low, high float64
	logs      bool // logarithmic
}

// newAxis returns a logarithmic axis if the largest value is more than spread times the smallest.
func newAxis(values []float64, spread float64, zero bool) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1)}
	for _, v := range values {
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	a.logs = a.low > 0 && a.high > spread*a.low
	if zero && !a.logs {
		a.low = min(a.low, 0)
	}
	return a
}

// position returns the position of a value on the axis, from 0 to 1.
func (a *axis) position(v float64) float64 {
	switch {
	case a.high <= a.low:
		return 0.5
	case a.logs:
		return (math.Log(v) - math.Log(a.low)) / (math.Log(a.high) - math.Log(a.low))
	}
	return (v - a.low) / (a.high - a.low)
}

// Beside joins two blocks of lines side by side. The right block starts at column.
func Beside(left, right []string, column int) []string {
	var out []string
	for i := range max(len(left), len(right)) {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		out = append(out, strings.TrimRight(l+strings.Repeat(" ", max(column-Width(l), 0))+r, " "))
	}
	return out
}

// Wrap breaks a text into lines at spaces. If wide is 0, the text stays on one line.
func Wrap(text string, wide int) []string { return Hang("", text, "", wide) }

// Hang breaks a text into lines at spaces. The first line starts with head, the others
// with indent. A word that is wider than a line stays whole. If wide is 0, the text stays
// on one line.
func Hang(head, text, indent string, wide int) []string {
	if wide <= 0 {
		return []string{head + text}
	}
	var out []string
	line, empty := head, true
	for word := range strings.FieldsSeq(text) {
		switch {
		case empty && (Width(line)+Width(word) <= wide || Width(line) <= Width(indent)):
			line += word
		case !empty && Width(line)+1+Width(word) <= wide:
			line += " " + word
		default:
			out, line = append(out, strings.TrimRight(line, " ")), indent+word
		}
		empty = false
	}
	return append(out, line)
}
