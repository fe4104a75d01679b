package ui

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tacho-bench/tacho/store"
)

// mostFile is the maximum size of a live state, of notes and of a page.
const mostFile = 64 << 20

// real returns the folder with symbolic links resolved. The user may name the folder
// through a link; links inside the folder are not followed.
func (s *runList) real() (string, error) { return filepath.EvalSymlinks(s.root) }

// openRun opens the directory of a run. Files opened through the result are inside the
// folder, even if a link replaces a directory meanwhile.
func (s *runList) openRun(it *Item) (*os.Root, error) {
	folder, err := s.openFolder()
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	return folder.OpenRoot(it.place)
}

// openFolder opens the folder.
func (s *runList) openFolder() (*os.Root, error) {
	root, err := s.real()
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(root)
}

// readFile reads a file of a run.
func (s *runList) readFile(it *Item, name string) ([]byte, error) {
	run, err := s.openRun(it)
	if err != nil {
		return nil, err
	}
	defer func() { _ = run.Close() }()
	return readPlain(run, name)
}

// writeFile replaces a file of a run.
func (s *runList) writeFile(it *Item, name string, b []byte) error {
	run, err := s.openRun(it)
	if err != nil {
		return err
	}
	defer func() { _ = run.Close() }()
	return writePlain(run, name, b)
}

// readPlain reads a regular file. It does not follow links, and does not open pipes,
// which may never end.
func readPlain(in *os.Root, name string) ([]byte, error) {
	info, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notPlain(name)
	}
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if len(b) > mostFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, mostFile>>20)
	}
	return b, err
}

// writePlain replaces a file. Readers see the old file or the complete new file.
func writePlain(in *os.Root, name string, b []byte) error {
	temporary := ".new-" + name
	if err := in.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := in.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = in.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, in.Remove(temporary))
	}
	return nil
}

func notPlain(name string) error {
	return fmt.Errorf("%.80q is not a regular file: remove it to open the run", name)
}

// plainFiles returns an error if a run directory contains anything but regular files and
// directories, because a link could lead out of the folder and a pipe would never end.
func plainFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() && !e.IsDir() {
			return notPlain(e.Name())
		}
	}
	return nil
}

// running reports whether a run is in progress. A live state that is a link is ignored.
func running(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, store.LiveFile))
	return err == nil && info.Mode().IsRegular() && store.Running(dir)
}
