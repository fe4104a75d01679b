package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// text formats the help at the given width. Examples come first, because most
// people look for a similar one.
func (s *helpPage) text(width int) string {
	var b strings.Builder
	b.WriteString(reflow(s.short, width))
	if len(s.examples) > 0 {
		b.WriteString("\nExamples:\n")
	}
	for _, try := range s.examples {
		b.WriteString(wrapCommand(try, width))
	}
	b.WriteString("\nUsage:\n" + indented(s.use, 2, width))
	if s.long != "" {
		b.WriteString("\n" + reflow(s.long, width))
	}
	column := s.column(width)
	for _, p := range s.parts {
		b.WriteString("\n" + p.text(column, width))
	}
	for _, line := range s.more {
		b.WriteString("\n" + reflow(line, width))
	}
	return b.String()
}

// column returns the start column of descriptions, or 0 if the width is too
// small. Descriptions of long names start on the next line.
func (s *helpPage) column(width int) int {
	const most = 32
	column := 0
	for _, p := range s.parts {
		for _, r := range p.rows {
			if n := utf8.RuneCountInString(r.name) + 4; n <= most && !p.brief {
				column = max(column, n)
			}
		}
	}
	if width < 2*most {
		return 0
	}
	return column
}

// text formats the part as a table, or as a list of names.
func (p *part) text(column, width int) string {
	var b strings.Builder
	b.WriteString(p.title + ":\n")
	if p.brief {
		names := make([]string, len(p.rows))
		for i, r := range p.rows {
			names[i] = r.name
		}
		b.WriteString(indented(strings.Join(names, ", "), 2, width))
		return b.String()
	}
	for _, r := range p.rows {
		b.WriteString(r.line(column, width))
	}
	return b.String()
}

// line formats a name and its description, which starts at a column.
func (r *row) line(column, width int) string {
	name := "  " + r.name
	if column == 0 || utf8.RuneCountInString(name) > column-2 {
		return name + "\n" + indented(r.text, max(column, 6), width)
	}
	text := indented(r.text, column, width)
	return fmt.Sprintf("%-*s", column, name) + text[min(column, len(text)):]
}

// indented wraps text at a width with an indentation.
func indented(text string, column, width int) string {
	var b strings.Builder
	for _, line := range wrap(text, width-column) {
		fmt.Fprintf(&b, "%*s%s\n", column, "", line)
	}
	return b.String()
}

// reflow wraps paragraphs at a width. Indented lines stay unchanged.
func reflow(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			b.WriteString(indented(strings.Join(paragraph, " "), 0, width))
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case line == "":
			end()
			b.WriteByte('\n')
		case line[0] == ' ':
			end()
			b.WriteString(indented(strings.TrimSpace(line), len(line)-len(strings.TrimLeft(line, " ")), width))
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
	return b.String()
}

// wrap breaks text between words. Words that are too long are broken after
// commas, or not at all.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		gap := " "
		for _, piece := range parts(word, width) {
			if line != "" && utf8.RuneCountInString(line+gap+piece) > width {
				lines, line = append(lines, line), ""
			}
			if line != "" {
				line += gap
			}
			line, gap = line+piece, ""
		}
	}
	return append(lines, line)
}

func parts(word string, width int) []string {
	if utf8.RuneCountInString(word) <= width {
		return []string{word}
	}
	return strings.SplitAfter(word, ",")
}

// wrapCommand breaks a command before flags with backslashes, so that a shell
// can still read it.
func wrapCommand(command string, width int) string {
	var b strings.Builder
	line := "  "
	for _, piece := range pieces(command) {
		if len(line)+len(piece)+2 > width && strings.TrimSpace(line) != "" {
			b.WriteString(strings.TrimRight(line, " ") + " \\\n")
			line = "      "
		}
		line += piece + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

// pieces splits a command into flags with their values. Quoted text is not
// split.
func pieces(command string) []string {
	var out []string
	from, quote := 0, rune(0)
	for i, r := range command {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == ' ' && strings.HasPrefix(command[i+1:], "-"):
			out, from = append(out, command[from:i]), i+1
		}
	}
	return append(out, command[from:])
}
