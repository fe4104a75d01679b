package report

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"tacho/metric"
)

// A table is typed rows: what text, CSV, JSON lines, Markdown and Parquet have
// in common. Rows may be many, and come one at a time.
type table struct {
	Columns []column
	Rows    iter.Seq2[[]cell, error]
}

// A column is one column of a table.
type column struct {
	Name string
	Kind cellKind
}

// cellKind is what the cells of a column hold.
type cellKind int

// The kinds of cell.
const (
	textKind cellKind = iota
	wholeKind
	numberKind
)

// A cell is one value; the zero value is nothing measured. Which field counts is
// its column's to say.
type cell struct {
	Text   string
	Number float64 // whole, in a column of whole numbers
	Known  bool    // of a number
	Sure   *metric.Interval
}

// forPeople is a cell as people read it.
func (c *column) forPeople(one cell) string {
	switch {
	case c.Kind == textKind:
		return safe(one.Text)
	case !one.Known:
		return notMeasured
	case c.Kind == wholeKind:
		return strconv.FormatFloat(one.Number, 'f', 0, 64)
	}
	return fixed(&one.Number)
}

// strings are all cells as people read them, the names of the columns first. sure
// is with intervals.
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
		for i := range row {
			text := t.Columns[i].forPeople(row[i])
			text += surety(row[i], sure)
			line = append(line, text)
		}
		out = append(out, line)
	}
	return out, nil
}

// noInterval marks a figure that has no interval.
const noInterval = "~"

// noIntervalWords say what the mark and the intervals in a table mean.
const noIntervalWords = noInterval + ": no 95 % interval"

// surety is what stands behind a figure: its interval, or that there is none.
func surety(c cell, with bool) string {
	switch in := c.Sure; {
	case in == nil || !c.Known:
		return ""
	case in.Low == nil:
		return noInterval
	case with:
		return " (steady " + fixed(in.Low) + " to " + fixed(in.High) + ")"
	}
	return ""
}

// marks says whether a table has a figure without an interval.
func marks(lines [][]string) bool {
	return slices.ContainsFunc(lines, func(line []string) bool {
		return slices.ContainsFunc(line, func(text string) bool { return strings.HasSuffix(text, noInterval) })
	})
}

// A source is one column and how its cells come from a T.
type source[T any] struct {
	column
	of func(T) cell
}

// words is a column of texts.
func words[T any](name string, of func(T) string) source[T] {
	return source[T]{column{Name: name}, func(t T) cell {
		text := of(t)
		return cell{Text: text, Known: text != ""}
	}}
}

// count is a column of whole numbers.
func count[T any](name string, of func(T) int) source[T] {
	return source[T]{column{Name: name, Kind: wholeKind}, func(t T) cell { return cell{Number: float64(of(t)), Known: true} }}
}

// asked is a column of whole numbers that somebody asked for; 0 is nothing.
func asked[T any](name string, of func(T) int) source[T] {
	return source[T]{column{Name: name, Kind: wholeKind}, func(t T) cell { n := of(t); return cell{Number: float64(n), Known: n > 0} }}
}

// number is a column of numbers; nil is not measured.
func number[T any](name string, of func(T) *float64) source[T] {
	return source[T]{column{Name: name, Kind: numberKind}, func(t T) cell {
		if v := of(t); v != nil {
			return cell{Number: *v, Known: true}
		}
		return cell{}
	}}
}

// tableOf is the table of items by its sources.
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

// A RowKind is what a row of a table is of.
type RowKind struct {
	Name  string
	table func(*Report) table
}

// RowKinds are all kinds of row; the first is the usual one.
var RowKinds = []RowKind{{"level", (*Report).levelTable}, {"request", (*Report).requestTable}, {"token", (*Report).tokenTable}, {"repeat", (*Report).repeatTable}}

func (k RowKind) String() string { return k.Name }

// table is the whole table of a report, with the rows it asks for.
func (r *Report) table() (table, error) { return r.tableOf(cmp.Or(r.Rows, RowKinds[0].Name)) }

func (r *Report) tableOf(rows string) (table, error) {
	kind, err := named(RowKinds, "kind of row", rows)
	if err != nil {
		return table{}, err
	}
	return kind.table(r), nil
}
