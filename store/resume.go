package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tacho/internal/solely"
)

// Over says whether a level came to its end.
func (l *Level) Over() bool { return l.Config.Client != nil && !l.Config.Interrupted }

// Resume takes up a run that was cut short, or that lacks records. It removes all
// that is kept of levels that did not come to their end, and of those whose
// records have a Mismatch.
func Resume(dir string, now time.Time, clean func(doc []byte) []byte) (*Writer, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	mismatched, err := r.Mismatched()
	if err != nil {
		return nil, err
	}
	if r.Whole && len(mismatched) == 0 {
		return nil, fmt.Errorf("%s came to its end: there is nothing to go on with", dir)
	}
	if err := inUse(dir); err != nil {
		return nil, err
	}
	over := map[int]bool{}
	for _, l := range r.Levels {
		over[l.Index] = l.Over() && !mismatched[l.Index]
	}
	if err := os.Remove(filepath.Join(dir, SummaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // with a summary the run would pass as whole
	}
	w := &Writer{dir: dir, clean: clean, added: map[int]int{}}
	r.Manifest.Resumed = append(r.Manifest.Resumed, now)
	// Stages come last: while they name a level, its records are known to be of it.
	for _, name := range []string{RecordsFile, InstrumentsFile, StagesFile} {
		if err := keepLines(filepath.Join(dir, name), func(stage int) bool { return over[stage] }); err != nil {
			return nil, fmt.Errorf("go on with %s: %w", dir, err)
		}
	}
	return w, errors.Join(w.writeJSON(ManifestFile, r.Manifest), w.appendAll())
}

// inUse says who else writes a run; nil is nobody.
func inUse(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, RecordsFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if solely.Lock(f) != nil {
		return taken(dir)
	}
	return nil
}

// keepLines keeps the whole lines of a file that are of some stages, and drops the
// others.
func keepLines(path string, keep func(stage int) bool) (err error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // it has another name if all went well
	from, to := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	for {
		line, err := from.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // what has no end was being written
		} else if err != nil {
			return errors.Join(err, out.Close())
		}
		var of struct{ Stage, Index *int }
		if json.Unmarshal(line, &of) != nil {
			continue
		}
		if of.Stage == nil {
			of.Stage = of.Index
		}
		if of.Stage != nil && keep(*of.Stage) {
			_, _ = to.Write(line) // Flush tells
		}
	}
	if err := errors.Join(to.Flush(), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}
