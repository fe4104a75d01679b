// Package atomicfile reads files into memory up to a size limit, limits which files a process may read, and replaces
// files atomically.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes b to a temporary file and renames the file to path, so readers see the complete file or none. Write
// creates missing directories.
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

// maxBytes limits Read: vocabularies, templates, images and audio are far smaller. maxShort limits files written by
// hand, and keys.
const (
	maxBytes = 256 << 20
	maxShort = 1 << 20
)

// Read reads a regular file of at most 256 MiB.
func Read(path string) ([]byte, error) { return read(path, maxBytes) }

// ReadShort reads a regular file of at most 1 MiB, for files written by hand.
func ReadShort(path string) ([]byte, error) { return read(path, maxShort) }

// ReadOnce reads a key or another secret of at most 1 MiB. The path may be a pipe.
func ReadOnce(path string) ([]byte, error) { return readUpTo(path, maxShort) }

func read(path string, most int64) ([]byte, error) {
	if err := ends(path); err != nil {
		return nil, err
	}
	return readUpTo(path, most)
}

// Open opens a file for reading. Like Read, it rejects pipes and devices.
func Open(path string) (*os.File, error) {
	if err := ends(path); err != nil {
		return nil, err
	}
	return openFile(path)
}

// OpenOnce opens a file for reading. The path may be a pipe.
func OpenOnce(path string) (*os.File, error) { return openFile(path) }

// ends rejects pipes and devices because they may never end.
func ends(path string) error {
	info, err := Stat(path)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeDevice != 0:
		return fmt.Errorf("%s is a device: name a file", path)
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		return fmt.Errorf("%s is a pipe: save its output to a file and name the file", path)
	}
	return nil
}

func readUpTo(path string, most int64) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLarge := fmt.Errorf("%s is larger than %d MiB: is it the right file?", path, most>>20)
	if info.Mode().IsRegular() && info.Size() > most {
		return nil, tooLarge
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), most)) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, tooLarge
	}
	return b.Bytes(), nil
}
