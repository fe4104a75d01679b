// Package rows reads data files as a sequence of rows: JSON lists, JSON lines, CSV and Parquet, compressed or not.
// Each row is a JSON object. Only one row is in memory at any time.
package rows

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// ErrEnough is returned by a callback to stop reading without an error.
var ErrEnough = errors.New("stop reading rows")

// ErrTooMuch is returned by a callback if the rows do not fit into memory.
var ErrTooMuch = errors.New("the data does not fit into memory: use a smaller file, or read less of it with --num-prompts and --disable-shuffle")

// Bad decides whether to skip unusable rows, and counts them.
type Bad struct {
	Skip  bool // otherwise the first bad row is an error
	Count int
	first error
}

// Take handles a bad row. It returns an error unless bad rows are skipped.
func (b *Bad) Take(err error) error {
	if !b.Skip {
		return fmt.Errorf("%w (use --bad-lines skip to skip it)", err)
	}
	if b.Count == 0 {
		b.first = err
	}
	b.Count++
	return nil
}

// Notes returns the number of skipped rows and the reason for the first, for the report.
func (b *Bad) Notes() []string {
	if b.Count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("skipped %d bad lines; the first: %v; fix or remove them", b.Count, b.first)}
}

// Also returns the end of an error message for data without usable rows.
func (b *Bad) Also() string {
	if b.Count == 0 {
		return ""
	}
	return fmt.Sprintf(" that can be used: skipped %d bad lines; the first: %v", b.Count, b.first)
}

// Each calls fn for each row of a file. Errors of fn go to bad.
func Each(path string, bad *Bad, fn func(row json.RawMessage) error) error {
	r := reader{path, bad, func(row json.RawMessage, _ int64) error { return fn(row) }}
	return unlessEnough(r.rows())
}

// EachLine is Each for a file of JSON lines with any name.
func EachLine(path string, bad *Bad, fn func(row json.RawMessage) error) error {
	r := reader{path, bad, func(row json.RawMessage, _ int64) error { return fn(row) }}
	return unlessEnough(r.lines())
}

func unlessEnough(err error) error {
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// A reader reads the rows of one file.
type reader struct {
	path string
	bad  *Bad
	fn   func(row json.RawMessage, offset int64) error // offset is 0 if the file is not JSON
}

// Formats of a row's position in error messages.
const (
	lineOf    = ":"
	elementOf = ": element "
	rowOf     = ": row "
)

// take handles an error of row n.
func (r *reader) take(place string, n int, err error) error {
	switch {
	case err == nil || errors.Is(err, ErrEnough):
		return err
	case errors.Is(err, ErrTooMuch):
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return r.bad.Take(fmt.Errorf("%s%s%d: %w", r.path, place, n, err))
}

func (r *reader) rows() error {
	name := strings.ToLower(UncompressedName(r.path))
	switch {
	case strings.HasSuffix(name, ".parquet"):
		return r.parquet()
	case strings.HasSuffix(name, ".csv"):
		return r.csv()
	}
	list, err := isList(r.path)
	if err != nil {
		return err
	}
	if list || strings.HasSuffix(name, ".json") {
		return r.elements(list)
	}
	return r.lines()
}

func (r *reader) lines() error {
	lines, err := OpenLines(r.path)
	if err != nil {
		return err
	}
	defer lines.Close()
	for text := range lines.All {
		if err := r.take(lineOf, lines.Number(), r.fn(text, lines.Offset())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// A boundedReader limits the bytes read beyond the current row, so a row that is too long cannot exhaust the
// memory.
type boundedReader struct {
	io.Reader
	read, end int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	const ahead = 1 << 20 // readers of rows read this much ahead
	if b.read > b.end+ahead {
		return 0, fmt.Errorf("longer than %d MiB: shorten or remove it", maxLine>>20)
	}
	n, err := b.Reader.Read(p[:min(len(p), ahead)])
	b.read += int64(n)
	return n, err
}

// isList reports whether a file starts like a JSON list.
func isList(path string) (bool, error) {
	f, err := openFile(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, fmt.Errorf("%s is empty", path)
		} else if err != nil {
			return false, fmt.Errorf("%s: %w", path, err)
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c == '[', nil
		}
	}
}

// elements reads the elements of a list, or a sequence of JSON values.
func (r *reader) elements(list bool) error {
	f, err := openFile(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := &boundedReader{Reader: bufio.NewReaderSize(f, 1<<20), end: maxLine}
	dec := json.NewDecoder(in)
	if list {
		if _, err := dec.Token(); err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
	}
	for n := 1; dec.More(); n++ {
		var row json.RawMessage
		in.end = dec.InputOffset() + maxLine
		if err := dec.Decode(&row); err != nil {
			return fmt.Errorf("%s: element %d: %w", r.path, n, err)
		}
		if err := r.take(elementOf, n, r.fn(row, dec.InputOffset()-int64(len(row)))); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil && (list || !errors.Is(err, io.EOF)) {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return nil
}

func (r *reader) csv() error {
	f, err := openFile(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := &boundedReader{Reader: bufio.NewReaderSize(f, 1<<20), end: maxLine}
	table := csv.NewReader(in)
	header, err := table.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	for {
		in.end = table.InputOffset() + maxLine
		fields, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return fmt.Errorf("%s: %w", r.path, err)
		}
		line, _ := table.FieldPos(0)
		if err != nil {
			if err := r.take(lineOf, line, fmt.Errorf("%d fields, but %d columns", len(fields), len(header))); err != nil {
				return err
			}
			continue
		}
		row := map[string]string{}
		for i, name := range header {
			row[name] = fields[i]
		}
		text, err := json.Marshal(row)
		if err == nil {
			err = r.take(lineOf, line, r.fn(text, 0))
		}
		if err != nil {
			return err
		}
	}
}

// Count returns the number of rows in a data file.
func Count(path string) (int, error) {
	if strings.HasSuffix(strings.ToLower(path), ".parquet") {
		f, file, err := openParquet(path)
		if err != nil {
			return 0, err
		}
		return int(file.NumRows()), f.Close()
	}
	n := 0
	err := Each(path, &Bad{Skip: true}, func(json.RawMessage) error { n++; return nil })
	return n, err
}

// IsData reports whether Each can read a file with this name.
func IsData(name string) bool {
	ext := strings.ToLower(filepath.Ext(UncompressedName(name)))
	return slices.Contains([]string{".parquet", ".json", ".jsonl", ".csv"}, ext) && filepath.Base(name) != "dataset_infos.json"
}
