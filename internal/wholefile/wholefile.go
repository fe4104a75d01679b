// Package wholefile reads files that fit into memory, and writes files that
// are never seen half written.
package wholefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file under another name first, so that whoever reads it finds
// all of it or nothing. It makes the directories on the way.
func Write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// mostBytes bounds the files that are read whole, in bytes: vocabularies, templates,
// pictures and sounds are far smaller. mostShort bounds what people write by hand,
// and keys.
const (
	mostBytes = 256 << 20
	mostShort = 1 << 20
)

// Read reads a file that must not be larger than that.
func Read(path string) ([]byte, error) { return read(path, mostBytes) }

// ReadShort reads a file that somebody may have written by hand.
func ReadShort(path string) ([]byte, error) { return read(path, mostShort) }

// ReadOnce reads a key, or the like, that may also come through a pipe.
func ReadOnce(path string) ([]byte, error) { return readUpTo(path, mostShort) }

// read reads a file that can be read again: nothing else is sure to end.
func read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeDevice != 0:
		return nil, fmt.Errorf("%s is a device: name a file", path)
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		return nil, fmt.Errorf("%s is a pipe: keep what comes out of it in a file, and name that", path)
	}
	return readUpTo(path, most)
}

func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), most)) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, fmt.Errorf("%s is larger than %d MiB: is it the right file?", path, most>>20)
	}
	return b.Bytes(), nil
}
