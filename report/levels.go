package report

import (
	"bufio"
	"io"
	"strings"
)

var levelsFormat = Format{
	Name: "levels", Doc: "one line for each level",
	Render: func(w io.Writer, r *Report) error {
		out := bufio.NewWriter(w) // keeps the first error for Flush
		if err := (printer{out}).levels(r.Runs); err != nil {
			return err
		}
		return out.Flush()
	},
}

// CheckStyle complains about a style that there is not.
func CheckStyle(name string) error {
	_, err := styleNamed(name)
	return err
}

// StyleNames are the names of the styles and their aliases, for help.
func StyleNames() string {
	var names []string
	for _, s := range Styles {
		names = append(append(names, s.Name), s.Aliases...)
	}
	return strings.Join(names, ", ")
}
