package report

import (
	"bufio"
	"io"
)

var levelsFormat = Format{
	Name: "levels", Doc: "one line for each level",
	Render: func(w io.Writer, r *Report) error {
		out := bufio.NewWriter(w) // keeps the first error for Flush
		if err := (&printer{out: out}).levels(r.Runs); err != nil {
			return err
		}
		return out.Flush()
	},
}
