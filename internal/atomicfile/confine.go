package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
)

// A Place is a file or a directory that a confined process may read, with everything below it.
type Place struct {
	Path   string
	Prefix string // if not empty, only the entries of the directory Path that begin with Prefix
}

// confined are the permitted places of this process. A nil pointer permits all files.
var confined atomic.Pointer[[]Place]

// Confine limits Open, OpenOnce, Read, ReadShort, ReadOnce and Stat in the whole process to files in these places. The
// process of an agent confines itself before it receives plans, so that a plan cannot read other files, whatever option
// names them. Without places, no file can be read. undo removes the limit.
func Confine(places ...Place) (undo func()) {
	before := confined.Swap(&places)
	return func() { confined.Store(before) }
}

// A NotPermittedError reports a file outside the permitted places.
type NotPermittedError struct{ Path, Dir string }

func (e *NotPermittedError) Error() string {
	return fmt.Sprintf("the plan reads %s, and this agent does not permit it: start it with --allow-read %s", e.Path, e.Dir)
}

// openFile opens a file, if the process may read it.
func openFile(path string) (*os.File, error) {
	places := confined.Load()
	if places == nil {
		return os.Open(path)
	}
	f, _, err := inside(*places, path, true)
	return f, err
}

// Stat describes a file, if the process may read it.
func Stat(path string) (fs.FileInfo, error) {
	places := confined.Load()
	if places == nil {
		return os.Stat(path)
	}
	_, info, err := inside(*places, path, false)
	return info, err
}

// inside describes a file in one of the places, and opens it if open is set. A file outside gives the same error whether
// it exists or not. Only a name that could be a name of the model hub (owner/name) is reported as missing.
func inside(places []Place, path string, open bool) (*os.File, fs.FileInfo, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	real, missing := filepath.EvalSymlinks(full)
	if missing != nil {
		parent, err := filepath.EvalSymlinks(filepath.Dir(full))
		if real = full; err == nil {
			real = filepath.Join(parent, filepath.Base(full))
		}
	}
	for _, place := range places {
		dir, name, ok := place.holds(real)
		switch {
		case !ok:
			continue
		case missing != nil:
			return nil, nil, missing
		}
		return openIn(dir, name, path, open)
	}
	if errors.Is(missing, fs.ErrNotExist) && filepath.IsLocal(path) {
		return nil, nil, missing
	}
	return nil, nil, &NotPermittedError{Path: path, Dir: filepath.Dir(real)}
}

// holds reports whether the place contains a file, whose path has no links, and returns the directory and the name of
// the file in the directory.
func (p Place) holds(real string) (dir, name string, ok bool) {
	root, err := filepath.Abs(p.Path)
	if err != nil {
		return "", "", false
	}
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	if real == root && filepath.Dir(root) != root { // a directory that contains it, because it may be a file
		return filepath.Dir(root), filepath.Base(root), p.Prefix == ""
	}
	name, err = filepath.Rel(root, real)
	return root, name, err == nil && filepath.IsLocal(name) && strings.HasPrefix(name, p.Prefix)
}

// openIn opens a file in a directory. os.Root refuses a link that replaced a part of the path meanwhile and leaves the
// directory. Pipes and devices are refused, because they may never end.
func openIn(dir, name, shown string, open bool) (*os.File, fs.FileInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading
	info, err := root.Lstat(name)       // not a link: links are resolved
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a file: an agent reads only files", shown)
	}
	if !open {
		return nil, info, nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that replaced the file meanwhile would block
	if err != nil {
		return nil, nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", shown), err, f.Close())
	}
	return f, info, nil
}
