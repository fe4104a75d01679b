package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
)

var csvFormat = Format{
	Name: "csv", Ext: "csv",
	Doc:    "for spreadsheets: one line per level (--rows: per request or token); an empty cell was not measured",
	Render: renderCSV,
}

func renderCSV(w io.Writer, r *Report) error {
	table, err := r.table()
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	var line []string
	for _, c := range table.Columns {
		line = append(line, c.Name)
	}
	_ = out.Write(line) // the writer keeps the first error for Error
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		line = line[:0]
		for i, cell := range row {
			line = append(line, csvCell(table.Columns[i].Kind, cell))
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

func csvCell(kind cellKind, c cell) string {
	switch {
	case kind == textKind:
		return safeCell(c.Text)
	case c.Known && kind == timeKind:
		return timeText(c)
	case c.Known:
		return strconv.FormatFloat(c.Number, 'f', -1, 64)
	}
	return ""
}

// safeCell escapes a text for a spreadsheet, which would run a text that starts with one
// of =, +, - and @ as a formula.
func safeCell(text string) string {
	text = safe(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}

// renderFileCSV writes one line per block, with a column for every value of any block,
// in the order of the classic rows.
func renderFileCSV(w io.Writer, f *File) error {
	keys := fileKeys(f)
	out := csv.NewWriter(w)
	_ = out.Write(append([]string{"line", "style"}, keys...)) // the writer keeps the first error for Error
	for _, b := range f.Blocks {
		cells := map[string]string{}
		for _, l := range b.lines {
			if l.row.key != "" {
				cells[l.key()] = l.number()
			}
		}
		line := []string{strconv.Itoa(b.Line), b.Style()}
		for _, key := range keys {
			line = append(line, cells[key])
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

func fileKeys(f *File) []string {
	var keys []string
	for i := range rows {
		for _, b := range f.Blocks {
			for _, l := range b.lines {
				if l.row == &rows[i] && l.row.key != "" && !slices.Contains(keys, l.key()) {
					keys = append(keys, l.key())
				}
			}
		}
	}
	return keys
}
