// Package rows reads files of rows: JSON lists, JSON lines, CSV and Parquet,
// packed or not. A row is always a JSON object, and never more than one is in
// memory.
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

// ErrEnough is what a function returns that wants no more rows.
var ErrEnough = errors.New("no more rows are wanted")

// ErrTooMuch is what a function returns that has no room for more rows.
var ErrTooMuch = errors.New("too much to keep in memory: give a smaller file, or --num-prompts with --disable-shuffle, which reads no further than it must")

// Bad says what becomes of rows that cannot be used, and counts them.
type Bad struct {
	Skip  bool // else the first one stops the reading
	Count int
	first error
}

// Take is told what is wrong with a row and where it is: it stops at it, or
// counts it.
func (b *Bad) Take(err error) error {
	if !b.Skip {
		return fmt.Errorf("%w (--bad-lines skip goes on without it)", err)
	}
	if b.Count == 0 {
		b.first = err
	}
	b.Count++
	return nil
}

// Notes tells how many rows were skipped, and why the first was.
func (b *Bad) Notes() []string {
	if b.Count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d bad lines were skipped; the first: %v; mend them, or measure without", b.Count, b.first)}
}

// Also is the end of an error that says that no row is left.
func (b *Bad) Also() string {
	if b.Count == 0 {
		return ""
	}
	return fmt.Sprintf(" that can be used: %d bad lines were skipped; the first: %v", b.Count, b.first)
}

// Each reads the rows of a file. What fn finds wrong with one is told to bad.
func Each(path string, bad *Bad, fn func(row json.RawMessage) error) error {
	r := reader{path, bad, func(row json.RawMessage, _ int64) error { return fn(row) }}
	return unlessEnough(r.rows())
}

// EachLine is Each for a file whose lines are the rows, whatever its name.
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
	fn   func(row json.RawMessage, offset int64) error // the offset is 0 if the file is not JSON
}

// The places of rows in a file.
const (
	lineOf    = ":"
	elementOf = ": element "
	rowOf     = ": row "
)

// take says what becomes of row n, in which err was found wrong.
func (r *reader) take(place string, n int, err error) error {
	if err == nil || errors.Is(err, ErrEnough) || errors.Is(err, ErrTooMuch) {
		return err
	}
	return r.bad.Take(fmt.Errorf("%s%s%d: %w", r.path, place, n, err))
}

func (r *reader) rows() error {
	name := strings.ToLower(BareName(r.path))
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

// A boundedReader is a stream that is read no further than to an end, which
// moves on with the rows: one that is too long must not fill the memory.
type boundedReader struct {
	io.Reader
	read, end int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	const ahead = 1 << 20 // readers of rows read this much at once
	if b.read > b.end+ahead {
		return 0, fmt.Errorf("longer than %d MiB: cut it, or leave it out", mostLine>>20)
	}
	n, err := b.Reader.Read(p[:min(len(p), ahead)])
	b.read += int64(n)
	return n, err
}

// isList says whether a file begins like a JSON list.
func isList(path string) (bool, error) {
	f, err := openFile(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	in := bufio.NewReader(f)
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, fmt.Errorf("%s is empty", path)
		} else if err != nil {
			return false, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c == '[', nil
		}
	}
}

// elements reads the elements of a list, or JSON values one after the other.
func (r *reader) elements(list bool) error {
	f, err := openFile(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	in := &boundedReader{Reader: bufio.NewReaderSize(f, 1<<20), end: mostLine}
	dec := json.NewDecoder(in)
	if list {
		if _, err := dec.Token(); err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
	}
	for n := 1; dec.More(); n++ {
		var row json.RawMessage
		in.end = dec.InputOffset() + mostLine
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
	defer func() { _ = f.Close() }() // only read
	in := &boundedReader{Reader: bufio.NewReaderSize(f, 1<<20), end: mostLine}
	table := csv.NewReader(in)
	header, err := table.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	for {
		in.end = table.InputOffset() + mostLine
		fields, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return fmt.Errorf("%s: %w", r.path, err)
		}
		line, _ := table.FieldPos(0)
		if err != nil {
			if err := r.take(lineOf, line, fmt.Errorf("%d fields under %d columns", len(fields), len(header))); err != nil {
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

// Count is how many rows a data file has.
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

// IsData says by its name whether a file is one that Each reads.
func IsData(name string) bool {
	ext := strings.ToLower(filepath.Ext(BareName(name)))
	return slices.Contains([]string{".parquet", ".json", ".jsonl", ".csv"}, ext) && filepath.Base(name) != "dataset_infos.json"
}
