package workload

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// eachRow reads the rows of a data file: a JSON list, JSON lines, CSV with a
// header, or Parquet, packed or not. Each row is a JSON object; an error of fn is
// told with the place of the row.
func eachRow(path string, fn func(row json.RawMessage) error) error {
	switch name := strings.ToLower(bareName(path)); {
	case strings.HasSuffix(name, ".parquet"):
		return eachParquet(path, fn)
	case strings.HasSuffix(name, ".csv"):
		return eachCSV(path, fn)
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
		if err := fn(text); err != nil {
			return fmt.Errorf("%s:%d: %w", path, lines.Number(), err)
		}
	}
	return lines.Err()
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
		if !strings.ContainsRune(" \t\r\n\xef\xbb\xbf", rune(c)) {
			return c == '[', nil
		}
	}
}

// eachElement reads the elements of a list, or JSON values one after the
// other.
func eachElement(path string, list bool, fn func(json.RawMessage) error) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	if list {
		if _, err := dec.Token(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for n := 1; dec.More(); n++ {
		var row json.RawMessage
		if err := dec.Decode(&row); err != nil {
			return fmt.Errorf("%s: element %d: %w", path, n, err)
		}
		if err := fn(row); err != nil {
			return fmt.Errorf("%s: element %d: %w", path, n, err)
		}
	}
	if _, err := dec.Token(); err != nil && (list || !errors.Is(err, io.EOF)) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func eachCSV(path string, fn func(json.RawMessage) error) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	r := csv.NewReader(bufio.NewReaderSize(f, 1<<20))
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		row := map[string]string{}
		for i, name := range header {
			row[strings.TrimPrefix(name, "\ufeff")] = fields[i]
		}
		text, err := json.Marshal(row)
		if err == nil {
			err = fn(text)
		}
		if err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
}

// eachParquet reads a Parquet file row by row.
func eachParquet(path string, fn func(json.RawMessage) error) (err error) {
	f, err := os.Open(path)
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
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	rows := parquet.NewGenericReader[any](file)
	defer func() { _ = rows.Close() }() // only read
	buf := make([]any, 64)
	for n := 0; ; {
		got, err := rows.Read(buf)
		for _, v := range buf[:got] {
			n++
			text, err := json.Marshal(markBytes(v))
			if err == nil {
				err = fn(text)
			}
			if err != nil {
				return fmt.Errorf("%s: row %d: %w", path, n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}
