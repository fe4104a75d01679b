package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// parquet reads a Parquet file row by row.
func (r *reader) parquet() (err error) {
	f, file, err := openParquet(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	// The library may panic on a broken file.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: cannot read the Parquet file: %v", r.path, p)
		}
	}()
	rows := parquet.NewGenericReader[any](file)
	defer func() { _ = rows.Close() }()
	buf := make([]any, 8) // each up to maxLine
	for n := 0; ; {
		got, err := rows.Read(buf)
		for _, v := range buf[:got] {
			n++
			if sizeOf(v) > maxLine {
				return fmt.Errorf("%s: row %d: longer than %d MiB: shorten or remove it", r.path, n, maxLine>>20)
			}
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

// openParquet opens a Parquet file. Close f to release it.
func openParquet(path string) (f *os.File, file *parquet.File, err error) {
	if f, err = atomicfile.Open(path); err != nil {
		return nil, nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot read the Parquet file: %v", p)
		}
		if err != nil {
			_ = f.Close()
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return f, nil, err
	}
	if err := checkFooter(f, info.Size()); err != nil {
		return f, nil, err
	}
	if file, err = parquet.OpenFile(f, info.Size()); err != nil {
		return f, nil, err
	}
	return f, file, checkRows(f, file, info.Size())
}

// markBytes converts binary file contents, which the library returns as strings, to bytes, so JSON encodes them in
// base64.
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
