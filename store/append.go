package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/filelock"
	"github.com/tacho-bench/tacho/internal/recordjson"
)

// An appender appends lines to a file. Bytes that the disk does not accept are kept in memory, from the
// exact byte at which the write stopped. When the disk has space again, the file continues without a
// gap, and a line is never cut.
type appender struct {
	name    string
	file    io.WriteCloser
	clean   func(line []byte) []byte // removes secrets
	pending []byte
	line    []byte // the previous record; its memory is reused
	most    int
	batch   int   // bytes to collect before a write; 0 means one write per line
	size    int64 // size of the file after all pending bytes are written
	lost    int   // lines dropped because memory was full too
}

func appendTo(dir, name string, clean func([]byte) []byte) (*appender, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil && filelock.Lock(f) != nil {
		err = errors.Join(taken(dir), f.Close())
	}
	a := &appender{name: name, file: f, clean: clean, most: 256 << 20}
	if err == nil {
		a.size, err = f.Seek(0, io.SeekEnd)
	}
	return a, err
}

// taken returns the error for a run that another process writes.
func taken(dir string) error {
	return fmt.Errorf("another process writes to %s: wait for it, or stop it first", dir)
}

// put adds v as a pending line. The error is the error of the disk. The line is lost only if a.lost has
// grown.
func (a *appender) put(v any) error {
	b, err := a.encode(v)
	if err != nil {
		return fmt.Errorf("encode a line of %s: %w", a.name, err)
	}
	b = a.clean(b)
	if len(a.pending)+len(b) > a.most {
		if err := a.flush(); err != nil {
			a.lost++
			return err
		}
	}
	a.pending = append(append(a.pending, b...), '\n')
	a.size += int64(len(b)) + 1
	return nil
}

// write writes the pending bytes if there are enough of them.
func (a *appender) write() error {
	if len(a.pending) < a.batch {
		return nil
	}
	return a.flush()
}

func (a *appender) encode(v any) (b []byte, err error) {
	if r, ok := v.(*tacho.Record); ok {
		a.line, err = recordjson.Append(a.line[:0], r)
		return a.line, err
	}
	return json.Marshal(v)
}

func (a *appender) flush() error {
	if len(a.pending) == 0 {
		return nil
	}
	n, err := a.file.Write(a.pending)
	a.pending = a.pending[:copy(a.pending, a.pending[n:])]
	return err
}

// close writes the pending bytes a last time.
func (a *appender) close() error {
	failed := a.flush()
	if err := a.file.Close(); failed == nil {
		failed = err
	}
	if a.lost > 0 && failed == nil {
		failed = fmt.Errorf("%s lacks %d lines, which did not fit on the disk", a.name, a.lost)
	}
	return failed
}
