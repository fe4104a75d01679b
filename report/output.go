package report

import (
	"fmt"
	"strings"
)

// An Output is one requested file: its format, its kind of rows and its path.
type Output struct {
	Format Format
	Rows   string
	Path   string // empty means the default path
}

// ParseOutput parses FORMAT[:ROWS][=PATH].
func ParseOutput(text string) (o Output, err error) {
	kind, path, given := strings.Cut(text, "=")
	if given && path == "" {
		return o, fmt.Errorf("%q has no path after the =: add a path or remove the =", text)
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

// File returns the default name of the file.
func (o *Output) File() string {
	name, ext := "report", o.Format.Ext
	if ext == "" {
		name, ext = o.Format.Name, "txt"
	}
	if o.Rows != "" {
		name += "." + o.Rows
	}
	return name + "." + ext
}
