package report

import (
	"bufio"
	"io"
	"strings"

	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

var markdownFormat = Format{
	Name: "markdown", Ext: "md", Doc: "the conclusion, a chart of the loads and a table of all levels with 95 % intervals, for a pull request",
	Render: renderMarkdown,
}

func renderMarkdown(w io.Writer, r *Report) error {
	table := summaryTable(r.Runs)
	lines, err := table.strings(true)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w) // keeps the first error for Flush
	p := &printer{out: out}
	for i := range r.Runs {
		c := conclusion.Of(&r.Runs[i])
		p.line(markdownText(safe(strings.Join(c.Text, " "))) + "\n")
		if facts := headlineFacts(&r.Runs[i], &c.Headline); facts != "" {
			p.line(facts + "\n")
		}
		if chart := conclusion.ChartOf(&r.Runs[i]); chart != nil {
			p.mermaid(chart)
		}
	}
	marks := markLegend(lines)
	if text := table.withoutIntervals(); text != "" {
		p.line(text + "\n")
	}
	p.markdown(lines, rule(table.Columns))
	for _, line := range marks {
		p.line("\n" + line)
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

// headlineFacts is one line with the numbers of the headline, the model and the server.
func headlineFacts(run *outcome.Run, h *conclusion.Headline) string {
	var out []string
	for _, n := range h.Numbers() {
		out = append(out, markdownText(n.Label)+" **"+markdownText(strings.TrimSpace(n.Value+" "+n.Unit))+"**")
	}
	server := append([]string{run.Backend}, run.URLs[:min(len(run.URLs), 1)]...)
	for _, fact := range []string{run.Model, strings.Join(nonEmpty(server...), " at "), run.GPUs, run.Dataset} {
		if fact != "" {
			out = append(out, markdownText(safe(fact)))
		}
	}
	return strings.Join(out, " · ")
}

// markdown writes a table. rule is the line below its header.
func (p *printer) markdown(lines [][]string, rule string) {
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

// rule returns the line below the column names. Numbers are right-aligned.
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
