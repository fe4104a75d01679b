package report

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// A table is the common base of text, CSV, Markdown and Parquet: typed rows.
// Rows are streamed, because a table of tokens can be large.
type table struct {
	Columns []column
	Rows    iter.Seq2[[]cell, error]

	rows, bare int // set by strings: rows, and rows of which no figure has the interval that it could have
}

// A column is one column of a table.
type column struct {
	Name string
	Kind cellKind
}

// cellKind is the type of the cells of a column.
type cellKind int

// The kinds of cell.
const (
	textKind cellKind = iota
	wholeKind
	numberKind
	timeKind
)

// A cell is one value. The zero value means not measured. The kind of the column selects
// between Text and Number.
type cell struct {
	Text   string
	Number float64 // an integer in a column of integers; milliseconds since 1970 in a column of times
	Known  bool    // the value was measured
	Sure   *metric.Interval
	Void   bool // the verdict on the level makes the figure unusable
}

// format formats a cell for people.
func (c *column) format(one cell) string {
	switch {
	case c.Kind == textKind:
		return safe(one.Text)
	case !one.Known:
		return notMeasured
	case c.Kind == timeKind:
		return timeText(one)
	case c.Kind == wholeKind:
		return metric.Integer(int(one.Number))
	}
	return metric.Brief(one.Number)
}

// strings formats all cells for people, with the column names first. sure adds
// intervals.
func (t *table) strings(sure bool) ([][]string, error) {
	var names []string
	for i := range t.Columns {
		names = append(names, safe(t.Columns[i].Name))
	}
	out := [][]string{names}
	for row, err := range t.Rows {
		if err != nil {
			return nil, err
		}
		var line []string
		t.rows++
		bare := isBare(row)
		if bare {
			t.bare++
		}
		for i := range row {
			text := t.Columns[i].format(row[i])
			if !bare {
				text += intervalSuffix(row[i], sure)
			}
			if row[i].Void && row[i].Known {
				text = strings.TrimSuffix(text, noInterval) + unusable
			}
			line = append(line, text)
		}
		out = append(out, line)
	}
	return out, nil
}

// noInterval marks a figure without an interval.
const noInterval = "~"

// noIntervalWords explains the mark.
const noIntervalWords = noInterval + ": no 95 % interval"

// isBare reports whether no figure of a row has the interval that it could have. Then a sentence replaces the marks.
func isBare(row []cell) bool {
	could := func(c cell) bool { return c.Sure != nil && c.Known && !c.Void }
	return slices.ContainsFunc(row, could) && !slices.ContainsFunc(row, func(c cell) bool { return could(c) && c.Sure.Low != nil })
}

// withoutIntervals returns a sentence on rows without intervals, or "".
func (t *table) withoutIntervals() string {
	const why = ": too short, or not in a steady state."
	switch t.bare {
	case 0:
		return ""
	case t.rows:
		return "No figure has a 95 % interval" + why
	}
	return fmt.Sprintf("No figure of %d of %d levels has a 95 %% interval%s", t.bare, t.rows, why)
}

// intervalSuffix returns the interval to print after a figure, or the mark for none.
func intervalSuffix(c cell, with bool) string {
	switch in := c.Sure; {
	case in == nil || !c.Known:
		return ""
	case in.Low == nil:
		return noInterval
	case with:
		return " (steady " + metric.Brief(*in.Low) + " to " + metric.Brief(*in.High) + ")"
	}
	return ""
}

// unusable marks a figure that the verdict makes unusable.
const unusable = "!"

// markLegend explains the marks in a table.
func markLegend(lines [][]string) (out []string) {
	for _, mark := range []struct{ suffix, text string }{{noInterval, noIntervalWords}, {unusable, unusable + ": not usable, see the reasons of the level"}} {
		if slices.ContainsFunc(lines, func(line []string) bool {
			return slices.ContainsFunc(line, func(text string) bool { return strings.HasSuffix(text, mark.suffix) })
		}) {
			out = append(out, mark.text)
		}
	}
	return out
}

// A source is one column and the function that fills its cells from a T.
type source[T any] struct {
	column
	of func(T) cell
}

// textColumn is a column of texts.
func textColumn[T any](name string, of func(T) string) source[T] {
	return source[T]{column{Name: name}, func(t T) cell {
		text := of(t)
		return cell{Text: text, Known: text != ""}
	}}
}

// count is a column of integers.
func count[T any](name string, of func(T) int) source[T] {
	return source[T]{column{Name: name, Kind: wholeKind}, func(t T) cell { return cell{Number: float64(of(t)), Known: true} }}
}

// instant is a column of absolute times. The zero time means not known.
func instant[T any](name string, of func(T) time.Time) source[T] {
	return source[T]{column{Name: name, Kind: timeKind}, func(t T) cell {
		at := of(t)
		return cell{Number: float64(at.UnixMilli()), Known: !at.IsZero()}
	}}
}

// timeText formats a time in a column of times.
func timeText(c cell) string {
	return time.UnixMilli(int64(c.Number)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// optionalCount is a column of integers. 0 means not set.
func optionalCount[T any](name string, of func(T) int) source[T] {
	return source[T]{column{Name: name, Kind: wholeKind}, func(t T) cell { n := of(t); return cell{Number: float64(n), Known: n > 0} }}
}

// number is a column of numbers. nil, NaN and infinities mean not measured.
func number[T any](name string, of func(T) *float64) source[T] {
	return source[T]{column{Name: name, Kind: numberKind}, func(t T) cell {
		if v := finite(of(t)); v != nil {
			return cell{Number: *v, Known: true}
		}
		return cell{}
	}}
}

// tableOf builds a table with one row per item.
func tableOf[T any](sources []source[T], items iter.Seq2[T, error]) table {
	t := table{}
	for _, s := range sources {
		t.Columns = append(t.Columns, s.column)
	}
	t.Rows = func(yield func([]cell, error) bool) {
		for item, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			row := make([]cell, len(sources))
			for i, s := range sources {
				row[i] = s.of(item)
			}
			if !yield(row, nil) {
				return
			}
		}
	}
	return t
}

// A RowKind is a kind of table row: a level, a request, a token or a repeat.
type RowKind struct {
	Name  string
	table func(*Report) table
}

// RowKinds are all kinds of rows. The first is the default.
var RowKinds = []RowKind{{"level", (*Report).levelTable}, {"request", (*Report).requestTable}, {"token", (*Report).tokenTable}, {"repeat", (*Report).repeatTable}}

func (k RowKind) String() string { return k.Name }

// table returns the table of a report with its kind of rows.
func (r *Report) table() (table, error) {
	kind, err := named(RowKinds, "kind of row", cmp.Or(r.Rows, RowKinds[0].Name))
	if err != nil {
		return table{}, err
	}
	return kind.table(r), nil
}
