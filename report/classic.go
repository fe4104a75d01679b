package report

import (
	"bufio"
	"io"
)

var classicFormat = Format{
	Name: "classic", Doc: "the blocks of vLLM's serving benchmark and nothing else, byte for byte",
	Render: renderClassic,
}

func renderClassic(w io.Writer, r *Report) error {
	style, err := styleNamed(r.Style)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w) // keeps the first error for Flush
	for i := range r.Stages {
		if i > 0 {
			_ = out.WriteByte('\n')
		}
		_, _ = out.WriteString(joinLines(classicLines(&r.Stages[i].Summary, style)) + "\n")
	}
	return out.Flush()
}
