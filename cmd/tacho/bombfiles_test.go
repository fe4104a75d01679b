//go:build bombs && linux

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// A content writes a file.
type content func(path string) error

func text(s string) content {
	return func(path string) error { return os.WriteFile(path, []byte(s), 0o600) }
}

// repeated is a file of before, a unit many times, and after.
func repeated(before, unit string, times int, after string) content {
	return func(path string) error { return text(before + strings.Repeat(unit, times) + after)(path) }
}

// sparse is a file that starts with before and is otherwise zeros, which take no disk.
func sparse(before string, size int64) content {
	return func(path string) error {
		if err := text(before)(path); err != nil {
			return err
		}
		return os.Truncate(path, size)
	}
}

func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }

// zipped is a gzip file of before and of a unit many times: one gzip member for a million bytes.
func zipped(before, unit string, times int) content {
	return packed(func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, before, unit, times)
}

// zstandard is the same for zstd.
func zstandard(before, unit string, times int) content {
	return packed(func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, before, unit, times)
}

func packed(by func(io.Writer) (io.WriteCloser, error), before, unit string, times int) content {
	member := func(s string) ([]byte, error) {
		var b bytes.Buffer
		z, err := by(&b)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(z, s); err != nil {
			return nil, err
		}
		err = z.Close()
		return b.Bytes(), err
	}
	return func(path string) error {
		first, err := member(before)
		if err != nil {
			return err
		}
		n := max(1<<20/len(unit), 1)
		next, err := member(strings.Repeat(unit, n))
		if err != nil {
			return err
		}
		return os.WriteFile(path, slices.Concat(first, bytes.Repeat(next, times/n+1)), 0o600)
	}
}

// table is a Parquet file of rows with the same text. The encoding stores the text once per group of rows.
func table(rows int, prompt string, list int) content {
	type row struct {
		Prompt string   `parquet:"prompt,dict"`
		List   []string `parquet:"list,list,dict"`
	}
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		w := parquet.NewGenericWriter[row](f, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(1<<30))
		one := []row{{prompt, make([]string, list)}}
		for range rows {
			if _, err := w.Write(one); err != nil {
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
		return f.Close()
	}
}
