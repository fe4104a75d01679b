package report

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBlock is the error of Parse for a text without a classic block.
var ErrNoBlock = errors.New(`no report found: want a line "============ Serving Benchmark Result ============"`)

// A File is a text with classic blocks from any program. Users keep many runs in one
// file, with their own notes between the blocks.
type File struct {
	Blocks []*Block
	After  string     // free text below the last block
	Notes  []FileNote // lines that were not recognized
}

// A FileNote is a line inside a block that was kept unchanged because it was not
// recognized.
type FileNote struct {
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
	Why  string `json:"why"`
}

// A Block is one parsed classic block.
type Block struct {
	Line   int    // line number of its title, from 1
	Before string // free text above it
	lines  []line
}

// A Value is one number of a Block.
type Value struct {
	Key    string // as in the reference's JSON: "mean_ttft_ms"
	Number float64
	Whole  bool // printed as an integer
}

// Parse parses a text. A line inside a block is kept unchanged and noted if it is not a
// known row, or if it would not print again with the same bytes. Another dialect
// therefore loses nothing except the meaning of its own lines.
func Parse(text string) (*File, error) {
	f := &File{}
	source := strings.Split(text, "\n")
	starts, start := make([]int, len(source)+1), 0
	for i, l := range source {
		starts[i] = start
		start += len(l) + len("\n")
	}
	starts[len(source)] = start
	free := 0 // start of the free text before the next block
	for at := 0; at < len(source); {
		if l, ok := readLine(source[at]); !ok || l.row.kind != titleRow {
			at++
			continue
		}
		block, next := f.readBlock(source, at)
		block.Before = text[free:starts[at]]
		f.Blocks = append(f.Blocks, block)
		// The newline after a block is free text, because the last newline may be missing.
		at, free = next, starts[next]-len("\n")
	}
	if len(f.Blocks) == 0 {
		return nil, ErrNoBlock
	}
	f.After = text[free:]
	return f, nil
}

// readBlock parses the block at source[at] and returns the index of the line after it. A
// block ends with its footer. A truncated block ends before an empty line, another title
// or the end of the text.
func (f *File) readBlock(source []string, at int) (*Block, int) {
	b := &Block{Line: at + 1}
	seen := map[string]bool{}
	for ; at < len(source); at++ {
		l, ok := readLine(source[at])
		cutOff := strings.TrimSpace(source[at]) == "" || ok && l.row.kind == titleRow
		if len(b.lines) > 0 && cutOff {
			f.note(at, source[at], "the block above has no closing line of '='")
			return b, at
		}
		why := "not a known row of the report"
		if ok && l.row.key != "" && seen[l.key()] {
			ok, why = false, "duplicate row"
		}
		if !ok {
			f.note(at, source[at], why)
			l = line{row: &row{kind: unknownRow}, text: source[at]}
		}
		seen[l.key()] = true
		b.lines = append(b.lines, l)
		if l.row.kind == footerRow {
			return b, at + 1
		}
	}
	f.note(at-1, source[at-1], "the text ends before the closing line of '='")
	return b, at
}

func (f *File) note(at int, text, why string) {
	f.Notes = append(f.Notes, FileNote{at + 1, text, why})
}

// readLine parses one line. The result is printed again and compared with text, so that
// no line is understood only in part.
func readLine(text string) (line, bool) {
	bare, cr := strings.CutSuffix(text, "\r")
	for _, read := range []func(string) (line, bool){readHeading, readValue} {
		l, ok := read(bare)
		if !ok {
			continue
		}
		l.cr = cr
		for _, l.trimmed = range []bool{false, true} {
			if l.String() == text {
				return l, true
			}
		}
	}
	return line{}, false
}

// readHeading parses a line without a value.
func readHeading(text string) (line, bool) {
	kind, label := bareRow, text
	switch {
	case strings.HasPrefix(text, "="):
		kind, label = titleRow, strings.Trim(text, "=")
		if label == "" {
			kind = footerRow
		}
	case strings.HasPrefix(text, "-"):
		kind, label = sectionRow, strings.Trim(text, "-")
	}
	for i := range rows {
		if rows[i].kind == kind && rows[i].label == label {
			return line{row: &rows[i], width: len(text)}, true
		}
	}
	return line{}, false
}

// readValue parses a label and a number.
func readValue(text string) (line, bool) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return line{}, false
	}
	label, number := text[:colon+1], strings.Trim(text[colon+1:], " ")
	r, param := rowLabelled(label)
	if r == nil {
		return line{}, false
	}
	value, err := strconv.ParseFloat(number, 64)
	return line{row: r, param: param, value: value}, err == nil
}

// rowLabelled returns the row with a label, and the parameter in the label.
func rowLabelled(label string) (*row, string) {
	for i := range rows {
		r := &rows[i]
		if r.kind != wholeRow && r.kind != decimalRow {
			continue
		}
		before, after, hasParam := strings.Cut(r.label, placeholder)
		if !hasParam {
			if r.label == label {
				return r, ""
			}
			continue
		}
		rest, ok1 := strings.CutPrefix(label, before)
		param, ok2 := strings.CutSuffix(rest, after)
		if ok1 && ok2 && isParam(param) {
			return r, param
		}
	}
	return nil, ""
}

// isParam reports whether s is a number in the spelling of the classic report.
func isParam(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return err == nil && v >= 0 && percentileWord(v) == s
}

// String prints the file from its values, with the bytes that were read.
func (f *File) String() string {
	var b strings.Builder
	for _, block := range f.Blocks {
		b.WriteString(block.Before)
		b.WriteString(block.String())
	}
	b.WriteString(f.After)
	return b.String()
}

// String prints the block from its values, with the bytes that were read and without a
// final newline.
func (b *Block) String() string { return joinLines(b.lines) }

// Values iterates over the numbers of the block, in order.
func (b *Block) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for _, l := range b.lines {
			if l.row.key != "" && !yield(Value{l.key(), l.value, l.row.kind == wholeRow}) {
				return
			}
		}
	}
}

// Number returns the value of a key.
func (b *Block) Number(key string) (float64, error) {
	for v := range b.Values() {
		if v.Key == key {
			return v.Number, nil
		}
	}
	return 0, fmt.Errorf("the report at line %d has no %s", b.Line, key)
}

// Unknown returns the lines of the block that were not recognized.
func (b *Block) Unknown() []string {
	var texts []string
	for _, l := range b.lines {
		if l.row.kind == unknownRow {
			texts = append(texts, l.text)
		}
	}
	return texts
}

// Style returns the name of the newest style that prints a block with these rows, or "".
func (b *Block) Style() string {
	for i, style := range slices.Backward(Styles) {
		if b.fits(i) {
			return style.Name
		}
	}
	return ""
}

// fits reports whether b consists of rows of the style, in order, with every required
// row.
func (b *Block) fits(style int) bool {
	at := 0
	for i := range rows {
		r := &rows[i]
		found := false
		for at < len(b.lines) && b.lines[at].row == r {
			found = true
			at++
		}
		inStyle := style >= r.since && style <= r.until
		if found && !inStyle || !found && r.must && inStyle {
			return false
		}
	}
	return at == len(b.lines)
}
