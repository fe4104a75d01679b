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

	"github.com/tacho-bench/tacho/internal/filelock"
)

// Complete reports whether a level is complete.
func (l *Level) Complete() bool { return l.Config.Client != nil && !l.Config.Interrupted }

// Resume opens an incomplete run, or a run with missing records, for writing. It removes all data of
// incomplete levels and of levels with a Mismatch.
func Resume(dir string, now time.Time, clean func(doc []byte) []byte) (*Writer, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	mismatched, err := r.Mismatched()
	if err != nil {
		return nil, err
	}
	if r.Complete && len(mismatched) == 0 {
		return nil, fmt.Errorf("%s is complete: there is nothing to resume", dir)
	}
	if err := inUse(dir); err != nil {
		return nil, err
	}
	over := map[int]bool{}
	for _, l := range r.Levels {
		over[l.Index] = l.Complete() && !mismatched[l.Index]
	}
	if err := os.Remove(filepath.Join(dir, SummaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // with a summary the run would count as complete
	}
	w := &Writer{dir: dir, clean: clean, added: map[int]int{}}
	r.Manifest.Resumed = append(r.Manifest.Resumed, now)
	// The stages file is last: while it names a level, the level's records can be identified.
	for _, name := range []string{RecordsFile, InstrumentsFile, StagesFile} {
		if err := keepLines(filepath.Join(dir, name), func(stage int) bool { return over[stage] }); err != nil {
			return nil, fmt.Errorf("resume %s: %w", dir, err)
		}
	}
	return w, errors.Join(w.writeJSON(ManifestFile, r.Manifest), w.appendAll())
}

// inUse returns an error if another process writes the run.
func inUse(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, RecordsFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if filelock.Lock(f) != nil {
		return taken(dir)
	}
	return nil
}

// keepLines keeps the complete lines of some stages in a file and drops all other lines.
func keepLines(path string, keep func(stage int) bool) (err error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading
	out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // already renamed if all went well
	from, to := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	for {
		line, err := readRest(from, nil)
		if errors.Is(err, io.EOF) {
			break // an incomplete line was being written
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
			_, _ = to.Write(line) // Flush returns the error
		}
	}
	if err := errors.Join(to.Flush(), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}
