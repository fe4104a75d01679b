package report

import (
	"bufio"
	"io"
	"strings"

	"tacho/report/conclusion"
)

var markdownFormat = Format{
	Name: "markdown", Ext: "md", Doc: "a table of all levels with 95 % intervals, for a pull request",
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
	for i := range r.Runs {
		p.line(markdownText(safe(strings.Join(conclusion.Of(&r.Runs[i]).Text, " "))) + "\n")
	}
	unsure := marks(lines)
	p.markdown(lines, rule(table.Columns))
	if unsure {
		p.line("\n" + noIntervalWords)
	}
	for i := range r.Runs {
		for _, repeats := range r.Runs[i].Repeats() {
			lines := spreadLines(repeats.Spreads)
			p.line("\n" + markdownText(between(r.Runs, i, &repeats)) + "\n")
			p.markdown(lines, "|---"+strings.Repeat("|--:", len(lines[0])-2)+"|---|")
			p.line("\n" + markdownText(sentence(repeats.Words())))
		}
	}
	return out.Flush()
}

// markdown writes a table; rule is the line below its first.
func (p printer) markdown(lines [][]string, rule string) {
	for i, line := range lines {
		for k := range line {
			line[k] = markdownText(line[k])
		}
		p.line("| " + strings.Join(line, " | ") + " |")
		if i == 0 {
			p.line(rule)
		}
	}
}

func markdownText(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "&", "&amp;").Replace(text)
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
