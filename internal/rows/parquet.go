package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// parquet reads a Parquet file row by row.
func (r *reader) parquet() (err error) {
	f, file, err := openParquet(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	// A broken file can make the library panic; that must not be ours.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: not a Parquet file that can be read: %v", r.path, p)
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
				return fmt.Errorf("%s: row %d: %w", r.path, n, err)
			}
			if err := r.take(rowOf, n, r.fn(text, 0)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
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

// markBytes turns the contents of a file in a row of Parquet, which come as a
// string, into bytes, so that JSON has them in base64.
func markBytes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		data, isFile := v["bytes"].(string)
		if _, ok := v["path"]; ok && isFile {
			return map[string]any{"bytes": []byte(data), "path": v["path"]}
		}
		for name, value := range v {
			v[name] = markBytes(value)
		}
	case []any:
		for i := range v {
			v[i] = markBytes(v[i])
		}
	}
	return v
}
