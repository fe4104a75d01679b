package report

import (
	"bufio"
	"encoding/json"
	"io"
)

var jsonlFormat = Format{
	Name: "jsonl", Ext: "jsonl", Doc: "the lines of csv as JSON objects; null means not measured",
	Render: renderJSONL,
}

func renderJSONL(w io.Writer, r *Report) error {
	table, err := r.table()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	var b []byte
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		b = b[:0]
		for i, cell := range row {
			c := &table.Columns[i]
			between := byte(',')
			if i == 0 {
				between = '{'
			}
			b = append(appendJSON(append(b, between), c.Name), ':')
			switch {
			case !cell.Known:
				b = append(b, "null"...)
			case c.Kind == textKind:
				b = appendJSON(b, cell.Text)
			default:
				b = appendJSON(b, cell.Number)
			}
		}
		if _, err := out.Write(append(b, "}\n"...)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// appendJSON appends a text or a finite number. NaN and infinities become null.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null")
	}
	return append(b, text...)
}
