package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"
)

// A journal is a file of the coordinator with the received records of a level. The coordinator acknowledges a batch after
// the batch is in the journal, so the next coordinator of the run has all acknowledged records. A journal without a file
// keeps nothing.
type journal struct {
	file *os.File
	size int64 // up to the last complete entry
	err  error // the first error of a write
}

// An entry of a journal is a batch of records, or the state of the level. It is one line of JSON.
type entry struct {
	State *levelState `json:"state,omitempty"`
	Share int         `json:"share,omitempty"`
	End   bool        `json:"end,omitempty"`
	Body  []byte      `json:"body,omitempty"`
}

// open opens the journal of a run, and returns the last state of the level in it.
func (j *journal) open(path string) (last levelState, err error) {
	if path == "" {
		return last, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return last, err
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // the next run tries again
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > retention {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name())) // that run was not resumed
		}
	}
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return last, err
	}
	err = j.read(func(e entry) error {
		if e.State == nil {
			return nil
		}
		last = *e.State
		return last.check()
	})
	if err == nil {
		err = j.file.Truncate(j.size) // an incomplete entry was never acknowledged
	}
	if err != nil {
		return last, fmt.Errorf("read the journal of the run: %w", err)
	}
	return last, nil
}

// read passes on all complete entries, in order.
func (j *journal) read(do func(entry) error) error {
	if j.file == nil {
		return nil
	}
	from := bufio.NewReaderSize(io.NewSectionReader(j.file, 0, math.MaxInt64), 1<<16)
	for j.size = 0; ; {
		line, err := from.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return fmt.Errorf("entry at byte %d: %w", j.size, err)
		}
		j.size += int64(len(line))
	}
}

// add appends an entry.
func (j *journal) add(e entry) error {
	if j.file == nil || j.err != nil {
		return j.err
	}
	text, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.WriteAt(append(text, '\n'), j.size) // overwrites an incomplete entry
	}
	if err != nil {
		j.err = fmt.Errorf("keep the records of agents: %w: free disk space, then run tacho bench --resume", err)
		return j.err
	}
	j.size += int64(len(text)) + 1
	return nil
}

// clear removes all entries before a new level.
func (j *journal) clear() error {
	if j.file == nil {
		return nil
	}
	j.size = 0
	return j.file.Truncate(0)
}

// close closes the journal and, if its records are stored elsewhere, removes the file.
func (j *journal) close(remove bool) error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	if remove {
		err = errors.Join(err, os.Remove(j.file.Name()))
	}
	return err
}
