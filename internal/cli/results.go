package cli

import (
	"io"

	"github.com/tacho-bench/tacho/report"
)

// show renders r in the named format.
func show(w io.Writer, format string, r *report.Report) error {
	f, err := report.FormatNamed(format)
	if err != nil {
		return usage(err)
	}
	return f.Render(w, r)
}
