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

// maxMessageBytes bounds an entry. The NATS server of a coordinator accepts no larger messages.
const maxMessageBytes = 8 << 20

// A journal is a file of the coordinator with the received records of a level. The coordinator
// acknowledges a batch after the batch is in the journal, so the next coordinator of the run has
// all acknowledged records. A nil journal keeps nothing.
type journal struct {
	file *os.File
	size int64 // up to the last complete entry
	err  error // the first error of a write
}

// An entry of a journal is a batch of records, or the state of the level. It is one line of JSON,
// followed by the bytes of the batch.
type entry struct {
	State *levelState `json:"state,omitempty"`
	Share int         `json:"share,omitempty"`
	End   bool        `json:"end,omitempty"`
	Size  int         `json:"size,omitempty"` // bytes of the batch
}

// openJournal opens the journal of a run, and returns the last state of the level in it.
func openJournal(path string) (j *journal, last levelState, err error) {
	if path == "" {
		return nil, last, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, last, err
	}
	deleteOldJournals(filepath.Dir(path))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, last, err
	}
	j = &journal{file: f}
	err = j.read(func(e entry, _ []byte) error {
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
		return nil, last, errors.Join(fmt.Errorf("read the journal of the run: %w", err), f.Close())
	}
	return j, last, nil
}

// deleteOldJournals deletes the journals of runs that were not resumed.
func deleteOldJournals(dir string) {
	entries, _ := os.ReadDir(dir) // the next run tries again
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > retention {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// read passes on all complete entries, in order.
func (j *journal) read(do func(entry, []byte) error) error {
	if j == nil {
		return nil
	}
	from := bufio.NewReaderSize(io.NewSectionReader(j.file, 0, math.MaxInt64), 1<<16)
	for j.size = 0; ; {
		line, err := from.ReadBytes('\n')
		var e entry
		if err == nil && (json.Unmarshal(line, &e) != nil || e.Size < 0 || e.Size > maxMessageBytes) {
			return fmt.Errorf("entry at byte %d is invalid", j.size)
		}
		body := make([]byte, e.Size)
		if err == nil {
			_, err = io.ReadFull(from, body)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err == nil {
			err = do(e, body)
		}
		if err != nil {
			return err
		}
		j.size += int64(len(line) + len(body))
	}
}

// add appends an entry.
func (j *journal) add(e entry, body []byte) error {
	if j == nil || j.err != nil {
		return j.failed()
	}
	e.Size = len(body)
	text, err := json.Marshal(e)
	if err == nil {
		text = append(append(text, '\n'), body...)
		_, err = j.file.WriteAt(text, j.size) // overwrites an incomplete entry
	}
	if err != nil {
		j.err = fmt.Errorf("keep the records of agents: %w: free disk space, then run tacho bench --resume", err)
		return j.err
	}
	j.size += int64(len(text))
	return nil
}

// failed returns the first error of a write.
func (j *journal) failed() error {
	if j == nil {
		return nil
	}
	return j.err
}

// clear removes all entries before a new level.
func (j *journal) clear() error {
	if j == nil {
		return nil
	}
	j.size = 0
	return j.file.Truncate(0)
}

// close closes the journal and, if its records are stored elsewhere, removes the file.
func (j *journal) close(remove bool) error {
	if j == nil {
		return nil
	}
	err := j.file.Close()
	if remove {
		err = errors.Join(err, os.Remove(j.file.Name()))
	}
	return err
}
