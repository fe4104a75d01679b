// Package wholefile writes files that are never seen half written.
package wholefile

import (
	"errors"
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
