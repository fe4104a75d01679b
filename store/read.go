package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"tacho"
)

// A Run is a run as it was kept.
type Run struct {
	Dir      string
	Manifest Manifest
	Stages   []Stage
	Whole    bool // it came to its end and wrote its summary
}

// Open reads all of a run but its records.
func Open(dir string) (*Run, error) {
	r := &Run{Dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a run: it has no %s", dir, ManifestFile)
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &r.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, ManifestFile), err)
	}
	for line, err := range lines(filepath.Join(dir, StagesFile)) {
		if err != nil {
			return nil, err
		}
		var s Stage
		if err := json.Unmarshal(line.text, &s); err != nil {
			return nil, line.wrap(err)
		}
		if n := len(r.Stages); n > 0 && r.Stages[n-1].Index == s.Index {
			r.Stages[n-1] = s
		} else {
			r.Stages = append(r.Stages, s)
		}
	}
	_, err = os.Stat(filepath.Join(dir, SummaryFile))
	r.Whole = err == nil
	return r, nil
}

// Records are the finished requests of the run, in the order in which they
// finished. A last line that was cut off while it was written is left out: its
// request had not finished being kept.
func (r *Run) Records() iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		for line, err := range lines(filepath.Join(r.Dir, RecordsFile)) {
			if err != nil {
				yield(nil, err)
				return
			}
			rec := &tacho.Record{}
			if err := json.Unmarshal(line.text, rec); err != nil {
				yield(nil, line.wrap(err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

type numbered struct {
	path string
	n    int
	text []byte
}

func (l numbered) wrap(err error) error { return fmt.Errorf("%s:%d: %w", l.path, l.n, err) }

// lines are the whole lines of a file that may still be growing.
func lines(path string) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(numbered{}, err)
			}
			return
		}
		defer func() { _ = f.Close() }() // only read
		br := bufio.NewReaderSize(f, 1<<16)
		for n := 1; ; n++ {
			text, err := br.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(numbered{}, err)
				return
			}
			if len(bytes.TrimSpace(text)) > 0 && !yield(numbered{path, n, text}, nil) {
				return
			}
		}
	}
}
