package report

import (
	"cmp"
	"fmt"
	"iter"

	"tacho/stat"
)

// A Table is typed rows: what text, CSV, JSON lines, Markdown and Parquet have
// in common. Rows may be many, and come one at a time.
type Table struct {
	Columns []Column
	Rows    iter.Seq2[[]Cell, error]
}

// A Column is one column of a Table.
type Column struct {
	Name     string
	Kind     CellKind
	Decimals int // of a number, for people
}

// CellKind is what the cells of a column hold.
type CellKind int

// The kinds of cell.
const (
	TextCell CellKind = iota
	WholeCell
	NumberCell
)

// A Cell is one value; the zero value is nothing measured. Which field counts is
// its column's to say.
type Cell struct {
	Text     string
	Number   float64 // whole, in a column of whole numbers
	Known    bool    // of a number
	Interval *stat.Interval
	Note     string
}

func textCell(text string) Cell { return Cell{Text: text, Known: text != ""} }
func wholeCell(n int) Cell      { return Cell{Number: float64(n), Known: true} }
func numberCell(v float64) Cell { return Cell{Number: v, Known: true} }
func maybeCell(v *float64) Cell {
	if v == nil {
		return Cell{}
	}
	return numberCell(*v)
}

// forPeople is a cell as people read it.
func (c *Column) forPeople(cell Cell) string {
	text := notMeasured
	switch {
	case c.Kind == TextCell:
		text = safe(cell.Text)
	case cell.Known:
		decimals := c.Decimals
		if c.Kind == WholeCell {
			decimals = 0
		}
		text = fmt.Sprintf("%.*f", decimals, cell.Number)
		if in := cell.Interval; in != nil {
			text += fmt.Sprintf(" [%.*f, %.*f]", decimals, in.Low, decimals, in.High)
		}
	}
	if cell.Note != "" {
		text += " (" + safe(cell.Note) + ")"
	}
	return text
}

// strings are all cells as people read them, the names of the columns first.
func (t *Table) strings() ([][]string, error) {
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
			line = append(line, t.Columns[i].forPeople(row[i]))
		}
		out = append(out, line)
	}
	return out, nil
}

// A source is one column and how its cells come from a T.
type source[T any] struct {
	Column
	of func(T) Cell
}

// tableOf is the Table of items by its sources.
func tableOf[T any](sources []source[T], items iter.Seq2[T, error]) Table {
	t := Table{}
	for _, s := range sources {
		t.Columns = append(t.Columns, s.Column)
	}
	t.Rows = func(yield func([]Cell, error) bool) {
		for item, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			row := make([]Cell, len(sources))
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
	table func(*Report) Table
}

// RowKinds are all kinds of row; the first is the usual one.
var RowKinds = []RowKind{{"level", (*Report).levelTable}, {"request", (*Report).requestTable}, {"token", (*Report).tokenTable}}

func (k RowKind) String() string { return k.Name }

// table is the whole table of a report, with the rows it asks for.
func (r *Report) table() (Table, error) {
	kind, err := named(RowKinds, "kind of row", cmp.Or(r.Rows, RowKinds[0].Name))
	if err != nil {
		return Table{}, err
	}
	return kind.table(r), nil
}
