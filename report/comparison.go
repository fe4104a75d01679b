package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// ComparisonFormats are the formats of a comparison, in the order of the help text.
var ComparisonFormats = []FormatOf[compare.Comparison]{
	{Name: "text", Doc: "a table for each level, in 80 columns", Render: comparisonText},
	{Name: "markdown", Doc: "the same, for a pull request", Render: comparisonMarkdown},
	{Name: "benchstat", Doc: "Go's benchmark format, a line for each run: benchstat -col side FILE", Render: comparisonBenchstat},
	{Name: "json", Doc: "everything, for programs", Render: func(w io.Writer, c *compare.Comparison) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(c)
	}},
}

// ComparisonFormatNamed returns the format with the given name.
func ComparisonFormatNamed(name string) (FormatOf[compare.Comparison], error) {
	return named(ComparisonFormats, "format", name)
}

// letter names a side in a table.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return strconv.Itoa(i + 1)
}

// comparisonText shows each side beside the first, and the answer last. A comparison of one level is one
// table of quantities. A comparison of several levels is one table of levels per
// quantity.
func comparisonText(w io.Writer, c *compare.Comparison) error {
	out := &strings.Builder{}
	wrap := func(text, indent string) string {
		return strings.Join(termtext.Hang("", text, indent, cmp.Or(c.Wide, TextWidth)), "\n")
	}
	for i, s := range c.Sides {
		fmt.Fprintln(out, wrap(letter(i)+" "+safe(sideLine(&s)), "  "))
		for _, text := range conclusions(&s) {
			fmt.Fprintln(out, wrap("- "+safe(text), "  "))
		}
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(out, "%s\n", wrap("! "+safe(warning), "  "))
	}
	if options := levelOptions(c); len(options) > 1 {
		fmt.Fprintf(out, "Levels by %s.\n", safe(strings.Join(options, ", ")))
	}
	tables, omitted := differing(c, comparisonTables(c))
	writeTables(out, tables)
	for _, line := range unmatchedLevels(c) {
		fmt.Fprintf(out, "\n%s\n", wrap(safe(line), "  "))
	}
	fmt.Fprintf(out, "\n%s\n", wrap(strings.TrimSpace(legend(c)+" "+omitted), ""))
	for _, text := range answers(c) {
		fmt.Fprintln(out, wrap(text, "  "))
	}
	return written(w, out)
}

// differing puts the lines with a difference first, or of several levels the tables. Of several levels, the
// other lines are left out unless the user asks for them or nothing was tested.
func differing(c *compare.Comparison, tables []comparisonTable) (out []comparisonTable, omitted string) {
	short := len(c.Levels) > 1 && !c.Verbose && tests(c) > 0
	rows := 0
	differs := func(row *compare.Row, side int) bool {
		d := row.Deltas[side]
		return d != nil && d.Verdict != compare.Same && d.Verdict != compare.Untold
	}
	if len(c.Levels) > 1 && !short { // lines stay in the order of the levels
		rank := func(t comparisonTable) int {
			if slices.ContainsFunc(t.lines, func(l comparisonLine) bool { return differs(l.row, t.side) }) {
				return 2 * t.side
			}
			return 2*t.side + 1
		}
		slices.SortStableFunc(tables, func(a, b comparisonTable) int { return cmp.Compare(rank(a), rank(b)) })
		return tables, ""
	}
	for _, t := range tables {
		kept := slices.DeleteFunc(slices.Clone(t.lines), func(l comparisonLine) bool { return !differs(l.row, t.side) })
		if rest := slices.DeleteFunc(t.lines, func(l comparisonLine) bool { return differs(l.row, t.side) }); short {
			rows += len(rest)
		} else {
			kept = append(kept, rest...)
		}
		if t.lines = kept; len(kept) > 0 {
			out = append(out, t)
		}
	}
	if rows > 0 {
		omitted = fmt.Sprintf("%d rows without a difference or a test: --verbose prints them.", rows)
	}
	return out, omitted
}

// repeatsTPOT reports whether a row about ITL has the same values as the row about TPOT before it.
// Means of both are equal if every event has one token.
func repeatsTPOT(l *compare.Level, row *compare.Row) bool {
	name, is := strings.CutPrefix(row.Name, "itl.")
	i := slices.IndexFunc(l.Rows, func(r compare.Row) bool { return r.Name == "tpot."+name })
	return is && i >= 0 && slices.EqualFunc(row.Values, l.Rows[i].Values, func(a, b *float64) bool { return figureOr(a) == figureOr(b) })
}

// writeTables writes all tables with the same column widths.
func writeTables(out *strings.Builder, tables []comparisonTable) {
	var texts [][][]string
	for _, t := range tables {
		text := [][]string{{safe(t.title), letter(0), letter(t.side), "change", "95 % interval", ""}}
		for _, l := range t.lines {
			change, interval, verdict := deltaWords(l.row, t.side)
			text = append(text, []string{safe(l.name), figureOr(l.row.Values[0]), figureOr(l.row.Values[t.side]), change, interval, verdict})
		}
		texts = append(texts, text)
	}
	wide := columnWidths(slices.Concat(texts...))
	for _, text := range texts {
		fmt.Fprintln(out)
		for _, row := range text {
			line := fmt.Sprintf("%-*s %*s %*s %*s %-*s %s", wide[0], cut(row[0], wide[0]), wide[1], row[1], wide[2], row[2], wide[3], row[3], wide[4], row[4], row[5])
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
}

// columnWidths returns the widths of the columns. If the rows are wider than a terminal,
// first the padding of the figures goes, then the ends of the names.
func columnWidths(rows [][]string) []int {
	const leastName, usualName, mostName = 16, 20, 28
	need, room := []int{usualName, 0, 0, 0, 0, 0}, []int{0, 9, 9, 8, 15, 0}
	for _, row := range rows {
		for i, cell := range row {
			need[i] = max(need[i], utf8.RuneCountInString(cell))
		}
	}
	wide := slices.Clone(need)
	wide[0] = min(wide[0], mostName)
	over := len(wide) - 1 - TextWidth // the gaps
	for i := range wide {
		wide[i] = max(wide[i], room[i])
		over += wide[i]
	}
	for i := 1; i < len(wide) && over > 0; i++ {
		less := min(over, wide[i]-need[i])
		wide[i], over = wide[i]-less, over-less
	}
	wide[0] = max(wide[0]-max(over, 0), leastName)
	return wide
}

// A comparisonTable shows one side beside the first.
type comparisonTable struct {
	title string
	side  int
	lines []comparisonLine
}

type comparisonLine struct {
	name string
	row  *compare.Row
}

// comparisonTables returns the tables of a comparison: one for a single level, otherwise
// one per quantity.
func comparisonTables(c *compare.Comparison) []comparisonTable {
	var out []comparisonTable
	for side := 1; side < len(c.Sides); side++ {
		if len(c.Levels) == 1 {
			l := &c.Levels[0]
			t := comparisonTable{title: cmp.Or(l.Name, "one level") + runsOf(l, side), side: side}
			common := false
			for i := range l.Rows {
				if repeatsTPOT(l, &l.Rows[i]) {
					continue
				}
				t.lines = append(t.lines, comparisonLine{rowTitle(&l.Rows[i]), &l.Rows[i]})
				common = common || l.Rows[i].Values[side] != nil
			}
			if common {
				out = append(out, t)
			}
			continue
		}
		out = append(out, quantityTables(c, side)...)
	}
	return out
}

// quantityTables returns one table per quantity with a line for each level. A quantity
// that is 0 at every level is omitted.
func quantityTables(c *compare.Comparison, side int) []comparisonTable {
	var out []comparisonTable
	at := map[string]int{}
	flags, names := levelNames(c)
	for i := range c.Levels {
		for k := range c.Levels[i].Rows {
			row := &c.Levels[i].Rows[k]
			if row.Values[0] == nil || row.Values[side] == nil || repeatsTPOT(&c.Levels[i], row) {
				continue
			}
			n, seen := at[row.Name]
			if !seen {
				n = len(out)
				at[row.Name] = n
				out = append(out, comparisonTable{title: rowTitle(row), side: side})
			}
			out[n].lines = append(out[n].lines, comparisonLine{strings.TrimSpace(flags + " " + names[i] + runsOf(&c.Levels[i], side)), row})
		}
	}
	return slices.DeleteFunc(out, func(t comparisonTable) bool {
		return !slices.ContainsFunc(t.lines, func(l comparisonLine) bool { return *l.row.Values[0] != 0 || *l.row.Values[side] != 0 })
	})
}

// levelNames returns the shortest distinct names of the levels. If all levels are values
// of one option, levelNames also returns the option.
func levelNames(c *compare.Comparison) (option string, names []string) {
	options := levelOptions(c)
	for i := range c.Levels {
		name := c.Levels[i].Name
		if len(options) > 0 {
			_, values := optionsOf(name)
			name = strings.Join(values, ", ")
		}
		names = append(names, name)
	}
	if len(options) == 1 {
		return options[0], names
	}
	return "", names
}

// levelOptions returns the options that name the levels, or nil if the levels differ in
// their options.
func levelOptions(c *compare.Comparison) []string {
	if len(c.Levels) < 2 {
		return nil
	}
	first, _ := optionsOf(c.Levels[0].Name)
	for i := range c.Levels {
		options, values := optionsOf(c.Levels[i].Name)
		if len(options) != len(values) || !slices.Equal(options, first) {
			return nil
		}
	}
	return first
}

// optionsOf splits the name of a level into its options and their values.
func optionsOf(name string) (options, values []string) {
	for k, w := range strings.Fields(name) {
		if k%2 == 0 {
			options = append(options, w)
		} else {
			values = append(values, w)
		}
	}
	return options, values
}

// cut shortens a text to at most most characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// sideLine describes a side: name, tool, backend, model and number of runs.
func sideLine(s *compare.Side) string {
	words := []string{s.Name}
	if len(s.Runs) > 0 {
		r := &s.Runs[0]
		for _, fact := range []string{strings.TrimSpace(r.Tool + " " + r.Version), r.Backend, r.Model} {
			if fact != "" {
				words = append(words, fact)
			}
		}
	}
	if len(s.Runs) > 1 {
		words = append(words, fmt.Sprintf("%d runs", len(s.Runs)))
	}
	return strings.Join(words, ", ")
}

// runsOf returns the numbers of compared runs, or nothing for one run on each side.
func runsOf(l *compare.Level, side int) string {
	if l.Runs[0] < 2 && l.Runs[side] < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d runs of %s, %d of %s)", l.Runs[0], letter(0), l.Runs[side], letter(side))
}

func rowTitle(row *compare.Row) string {
	title := row.Quantity.Title
	if row.Unit != "" {
		title += " (" + string(row.Unit) + ")"
	}
	return title
}

// deltaWords returns the change, its interval and its verdict as text.
func deltaWords(row *compare.Row, side int) (change, interval, verdict string) {
	d := row.Deltas[side]
	if d == nil {
		return notMeasured, "", ""
	}
	first := row.Values[0]
	relative := d.Share != nil && row.Unit != "%"
	by, unit := 1.0, ""
	if relative {
		by, unit = 100/math.Abs(*first), "%"
	}
	change = metric.Signed(d.Difference*by) + unit
	if d.Low != nil {
		interval = fmt.Sprintf("[%s, %s]%s", metric.Signed(*d.Low*by), metric.Signed(*d.High*by), unit)
	}
	verdict = string(d.Verdict)
	if d.Adjusted != nil {
		p := fmt.Sprintf("p=%.2f", *d.Adjusted)
		if *d.Adjusted < 0.005 {
			p = fmt.Sprintf("p=%.1g", *d.Adjusted)
		}
		if *d.Adjusted < 0.001 {
			p = "p<0.001"
		}
		verdict = p + " " + verdict
	}
	if d.Verdict == compare.Same {
		change = "~"
	}
	return change, interval, strings.TrimSuffix(verdict, " ~")
}

// unmatchedLevels lists the levels of one side only.
func unmatchedLevels(c *compare.Comparison) []string {
	var out []string
	for i := range c.Sides {
		var names []string
		for _, a := range c.Alone {
			if a.Side == i {
				names = append(names, a.Name)
			}
		}
		const most = 5
		if more := len(names) - most; more > 0 {
			names = append(names[:most], fmt.Sprintf("and %d more", more))
		}
		if len(names) > 0 {
			out = append(out, fmt.Sprintf("Levels only in %s: %s", letter(i), strings.Join(names, "; ")))
		}
	}
	return out
}

// answers says in a sentence how each side differs from the first.
func answers(c *compare.Comparison) (out []string) {
	for side := 1; side < len(c.Sides); side++ {
		out = append(out, safe(conclusion.OfComparison(c, side)))
	}
	return out
}

// legend explains the marks of the table, and why some rows have no test.
func legend(c *compare.Comparison) string {
	var sentences []string
	if n := tests(c); n > 0 {
		sentences = append(sentences, fmt.Sprintf("~: no significant difference. p-values are adjusted for %d tests.", n))
	}
	reasons := map[string]bool{}
	for _, l := range c.Levels {
		for _, row := range l.Rows {
			for _, d := range row.Deltas {
				if d != nil && d.NoTest != "" && !reasons[d.NoTest] {
					reasons[d.NoTest] = true
					sentences = append(sentences, "No test: "+d.NoTest+".")
				}
			}
		}
	}
	return strings.Join(sentences, " ")
}

func tests(c *compare.Comparison) int {
	n := 0
	for _, l := range c.Levels {
		for _, row := range l.Rows {
			for _, d := range row.Deltas {
				if d != nil && d.P != nil {
					n++
				}
			}
		}
	}
	return n
}

// TextWidth is the width of sentences and comparisons if the width of the output is
// unknown.
const TextWidth = 80

// comparisonMarkdown writes the tables of comparisonText as Markdown.
func comparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	out := &strings.Builder{}
	for i, s := range c.Sides {
		fmt.Fprintf(out, "- **%s**: %s\n", letter(i), inCell(sideLine(&s)))
		for _, text := range conclusions(&s) {
			fmt.Fprintf(out, "  - %s\n", markdownText(safe(text)))
		}
	}
	for _, text := range answers(c) {
		fmt.Fprintf(out, "- %s\n", markdownText(text))
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(out, "- ⚠ %s\n", inCell(warning))
	}
	for _, t := range comparisonTables(c) {
		fmt.Fprintf(out, "\n| %s | %s | %s | change | 95 %% interval | |\n|---|--:|--:|--:|---|---|\n", inCell(t.title), letter(0), letter(t.side))
		for _, l := range t.lines {
			change, interval, verdict := deltaWords(l.row, t.side)
			if d := l.row.Deltas[t.side]; d != nil && d.Verdict == compare.Worse {
				verdict = "**" + verdict + "**"
			}
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", inCell(l.name), figureOr(l.row.Values[0]), figureOr(l.row.Values[t.side]), change, interval, verdict)
		}
	}
	for _, line := range unmatchedLevels(c) {
		fmt.Fprintf(out, "\n%s\n", inCell(line))
	}
	fmt.Fprintf(out, "\n%s\n", legend(c))
	return written(w, out)
}

// mostConclusions is the number of runs of a side whose conclusions are shown.
const mostConclusions = 5

// conclusions returns the conclusions of the runs of a side.
func conclusions(s *compare.Side) (out []string) {
	for i := range s.Runs[:min(len(s.Runs), mostConclusions)] {
		out = append(out, strings.Join(conclusion.Of(&s.Runs[i]).Text, " "))
	}
	if more := len(s.Runs) - mostConclusions; more > 0 {
		out = append(out, fmt.Sprintf("%d more runs.", more))
	}
	return out
}

// figureOr formats a figure, or says that it was not measured.
func figureOr(v *float64) string {
	if v == nil {
		return notMeasured
	}
	return metric.Brief(*v)
}

// comparisonBenchstat writes a line for each run of each side in the format of Go's
// benchmarks, with the side as a key.
func comparisonBenchstat(w io.Writer, c *compare.Comparison) error {
	out := &strings.Builder{}
	for i := range c.Sides {
		s := &c.Sides[i]
		fmt.Fprintf(out, "side: %s\n", strings.Join(strings.Fields(safe(s.Name)), "-"))
		for _, level := range c.Benchmarks(i) {
			fmt.Fprintf(out, "Benchmark%s 1", benchmarkName(level.Name))
			for _, v := range level.Values {
				fmt.Fprintf(out, " %v %s", v.Value, v.Unit)
			}
			fmt.Fprintln(out)
		}
	}
	return written(w, out)
}

// benchmarkName names a level like a Go sub-benchmark: Serve/request-rate=4.
func benchmarkName(name string) string {
	parts := []string{"Serve"}
	options, values := optionsOf(safe(name))
	for i := range values {
		parts = append(parts, options[i]+"="+strings.TrimSuffix(values[i], ","))
	}
	return strings.Join(parts, "/")
}

// written writes the contents of b in one call.
func written(w io.Writer, b *strings.Builder) error {
	_, err := io.WriteString(w, b.String())
	return err
}

// inCell escapes a text for a cell of a Markdown table.
func inCell(text string) string { return strings.ReplaceAll(safe(text), "|", `\|`) }
