package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tacho"
	"tacho/internal/recordjson"
	"tacho/internal/solely"
)

// mostWaiting bounds what waits in memory for a disk that takes no more.
const mostWaiting = 256 << 20

// An appender adds lines to a file. What the disk does not take waits in memory,
// from the very byte at which it stopped: when there is room again the file goes
// on as if nothing had been, and a line is never half.
type appender struct {
	name    string
	file    io.WriteCloser
	clean   func(line []byte) []byte // takes out what nobody may read
	waiting []byte
	line    []byte // of the record before; its room is used again
	most    int
	batch   int   // bytes that wait before they are written; 0: each line is at once
	size    int64 // of the file when all that waits is written
	lost    int   // lines for which there was no room in memory either
}

func appendTo(dir, name string, clean func([]byte) []byte) (*appender, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil && solely.Lock(f) != nil {
		err = errors.Join(taken(dir), f.Close())
	}
	a := &appender{name: name, file: f, clean: clean, most: mostWaiting}
	if err == nil {
		a.size, err = f.Seek(0, io.SeekEnd)
	}
	return a, err
}

// taken is a run that somebody else writes.
func taken(dir string) error {
	return fmt.Errorf("another process measures into %s: let it end, or stop it first", dir)
}

// put has v wait as a line. The error is the disk's: the line is lost only if
// lost has grown.
func (a *appender) put(v any) error {
	b, err := a.encode(v)
	if err != nil {
		return fmt.Errorf("keep a line of %s: %w", a.name, err)
	}
	b = a.clean(b)
	if len(a.waiting)+len(b) > a.most {
		if err := a.flush(); err != nil {
			a.lost++
			return err
		}
	}
	a.waiting = append(append(a.waiting, b...), '\n')
	a.size += int64(len(b)) + 1
	return nil
}

// write writes what waits, where that is enough.
func (a *appender) write() error {
	if len(a.waiting) < a.batch {
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
	if len(a.waiting) == 0 {
		return nil
	}
	n, err := a.file.Write(a.waiting)
	a.waiting = a.waiting[:copy(a.waiting, a.waiting[n:])]
	return err
}

// close tries the disk a last time.
func (a *appender) close() error {
	failed := a.flush()
	if err := a.file.Close(); failed == nil {
		failed = err
	}
	if a.lost > 0 && failed == nil {
		failed = fmt.Errorf("%s lacks %d lines", a.name, a.lost)
	}
	return failed
}
