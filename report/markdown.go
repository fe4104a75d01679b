package report

import (
	"bufio"
	"io"
	"strings"
)

var markdownFormat = Format{
	Name: "markdown", Doc: "a table of all levels with 95 % intervals, for a pull request",
	Render: renderMarkdown,
}

func renderMarkdown(w io.Writer, r *Report) error {
	table := glance(r.Runs)
	lines, err := table.strings(true)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w) // keeps the first error for Flush
	p := printer{out}
	for i, line := range lines {
		for k := range line {
			line[k] = strings.NewReplacer("|", `\|`, "<", "&lt;", "&", "&amp;").Replace(line[k])
		}
		p.line("| " + strings.Join(line, " | ") + " |")
		if i == 0 {
			p.line(rule(table.Columns))
		}
	}
	return out.Flush()
}

// rule is the line below the names of the columns: numbers stand to the right.
func rule(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		if c.Kind == textKind {
			b.WriteString("|---")
		} else {
			b.WriteString("|--:")
		}
	}
	return b.String() + "|"
}
