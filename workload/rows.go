package workload

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// eachRow reads the rows of a data file: a JSON list, JSON lines, CSV with a
// header, or Parquet, packed or not. Each row is a JSON object; an error of fn is
// told to bad, with the place of the row.
func eachRow(path string, bad *badLines, fn func(row json.RawMessage) error) error {
	return eachRowFrom(path, bad, func(row json.RawMessage, _ int64) error { return fn(row) })
}

// eachRowFrom is eachRow, and also tells where each row begins.
func eachRowFrom(path string, bad *badLines, fn func(row json.RawMessage, offset int64) error) error {
	at := func(place string, n int, err error) error {
		if err == nil || errors.Is(err, errEnough) || errors.Is(err, errTooMuch) {
			return err
		}
		return bad.take(fmt.Errorf("%s%s%d: %w", path, place, n, err))
	}
	err := eachRowAt(path, func(row json.RawMessage, place string, n int, offset int64) error {
		return at(place, n, fn(row, offset))
	}, at)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough is what a reader of rows returns when it wants no more.
var errEnough = errors.New("no more rows are wanted")

// The places of rows in a file.
const (
	lineOf    = ":"
	elementOf = ": element "
	rowOf     = ": row "
)

// A rowFunc is told a row, which line, element or row of its file it is, and
// where it begins, if the file is one of text.
type rowFunc func(row json.RawMessage, place string, n int, offset int64) error

// eachRowAt reads the rows of a file. It calls at for rows that cannot be read.
func eachRowAt(path string, fn rowFunc, at func(place string, n int, err error) error) error {
	switch name := strings.ToLower(bareName(path)); {
	case strings.HasSuffix(name, ".parquet"):
		return eachParquet(path, fn)
	case strings.HasSuffix(name, ".csv"):
		return eachCSV(path, fn, at)
	}
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	list, err := isList(f, path)
	if err != nil {
		return err
	}
	if list || strings.HasSuffix(strings.ToLower(bareName(path)), ".json") {
		return eachElement(path, list, fn)
	}
	lines, err := openLines(path)
	if err != nil {
		return err
	}
	defer lines.Close()
	for text := range lines.All {
		if err := fn(text, lineOf, lines.Number(), lines.offset); err != nil {
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
	const ahead = 1 << 20 // that whoever reads rows reads at once
	if b.read > b.end+ahead {
		return 0, fmt.Errorf("longer than %d MiB: cut it, or leave it out", mostLine>>20)
	}
	n, err := b.Reader.Read(p[:min(len(p), ahead)])
	b.read += int64(n)
	return n, err
}

// isList says whether a file begins like a JSON list.
func isList(r io.Reader, path string) (bool, error) {
	in := bufio.NewReader(r)
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

// eachElement reads the elements of a list, or JSON values one after the
// other.
func eachElement(path string, list bool, fn rowFunc) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	in := &boundedReader{Reader: bufio.NewReaderSize(f, 1<<20), end: mostLine}
	dec := json.NewDecoder(in)
	if list {
		if _, err := dec.Token(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for n := 1; dec.More(); n++ {
		var row json.RawMessage
		in.end = dec.InputOffset() + mostLine
		if err := dec.Decode(&row); err != nil {
			return fmt.Errorf("%s: element %d: %w", path, n, err)
		}
		if err := fn(row, elementOf, n, dec.InputOffset()-int64(len(row))); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil && (list || !errors.Is(err, io.EOF)) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func eachCSV(path string, fn rowFunc, at func(place string, n int, err error) error) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	in := &boundedReader{Reader: bufio.NewReaderSize(f, 1<<20), end: mostLine}
	r := csv.NewReader(in)
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		in.end = r.InputOffset() + mostLine
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return fmt.Errorf("%s: %w", path, err)
		}
		line, _ := r.FieldPos(0)
		if err != nil {
			if err := at(lineOf, line, fmt.Errorf("%d fields under %d columns", len(fields), len(header))); err != nil {
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
			err = fn(text, lineOf, line, 0)
		}
		if err != nil {
			return err
		}
	}
}

// eachParquet reads a Parquet file row by row.
func eachParquet(path string, fn rowFunc) (err error) {
	f, file, err := openParquet(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	// A broken file can make the library panic; that must not be ours.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: not a Parquet file that can be read: %v", path, p)
		}
	}()
	rows := parquet.NewGenericReader[any](file)
	defer func() { _ = rows.Close() }() // only read
	buf := make([]any, 64)
	for n := 0; ; {
		got, err := rows.Read(buf)
		for _, v := range buf[:got] {
			n++
			text, err := json.Marshal(markBytes(v))
			if err != nil {
				return fmt.Errorf("%s: row %d: %w", path, n, err)
			}
			if err := fn(text, rowOf, n, 0); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// openParquet opens a Parquet file. The file is closed with f.
func openParquet(path string) (f *os.File, file *parquet.File, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not a Parquet file that can be read: %v", p)
		}
		if err != nil {
			_ = f.Close() // only read
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return f, nil, err
	}
	if file, err = parquet.OpenFile(f, info.Size()); err != nil {
		return f, nil, err
	}
	return f, file, checkRows(file)
}

// checkRows refuses rows that would fill the memory when they are unpacked.
func checkRows(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for i := range group.Columns {
			size := group.Columns[i].MetaData.TotalUncompressedSize
			if size/max(group.NumRows, 1) > mostLine {
				return fmt.Errorf("rows of more than %d MiB: cut them, or leave the column out", mostLine>>20)
			}
		}
	}
	return nil
}

// CountRows is how many rows a data file has.
func CountRows(path string) (int, error) {
	if strings.HasSuffix(strings.ToLower(path), ".parquet") {
		f, file, err := openParquet(path)
		if err != nil {
			return 0, err
		}
		return int(file.NumRows()), f.Close()
	}
	n := 0
	err := eachRow(path, &badLines{skip: true}, func(json.RawMessage) error { n++; return nil })
	return n, err
}

// IsData says whether a file is one of those that eachRow reads, by its name.
func IsData(name string) bool {
	ext := strings.ToLower(filepath.Ext(bareName(name)))
	return slices.Contains([]string{".parquet", ".json", ".jsonl", ".csv"}, ext) && filepath.Base(name) != "dataset_infos.json"
}
