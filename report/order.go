package report

import (
	"fmt"
	"strings"
)

// An Order is one file that somebody wants: its format, what its rows are of,
// and where it goes.
type Order struct {
	Format Format
	Rows   string
	Path   string // empty is the usual place
}

// ParseOrder reads FORMAT[:ROWS][=PATH].
func ParseOrder(text string) (o Order, err error) {
	kind, path, given := strings.Cut(text, "=")
	if given && path == "" {
		return o, fmt.Errorf("%q: write a path behind the =, or leave it out", text)
	}
	name, rows, _ := strings.Cut(kind, ":")
	o.Rows, o.Path = rows, path
	if o.Format, err = FormatNamed(name); err != nil {
		return o, err
	}
	if rows != "" {
		_, err = named(RowKinds, "kind of row", rows)
	}
	return o, err
}

// File is the usual name of the file.
func (o *Order) File() string {
	name, ext := "report", o.Format.Ext
	if ext == "" {
		name, ext = o.Format.Name, "txt"
	}
	if o.Rows != "" {
		name += "." + o.Rows
	}
	return name + "." + ext
}
