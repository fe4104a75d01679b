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
	first := true
	for _, level := range r.levels() {
		if !first {
			_ = out.WriteByte('\n')
		}
		first = false
		_, _ = out.WriteString(joinLines(classicLines(&level.Summary, style)) + "\n")
	}
	return out.Flush()
}
