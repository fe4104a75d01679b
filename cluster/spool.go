package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tacho"
	"tacho/internal/recordjson"
)

// A spool keeps the records of a share until they are handed over: one stream of
// bytes, a line for each record, in files of some megabytes. Each line is with
// the kernel before the next, so that a process that is killed loses nothing that
// was finished. What the disk does not take waits in memory.
//
// It is the Sink of the share, and never waits for anybody who reads.
type spool struct {
	dir     string
	about   spoolAbout
	most    int64 // bytes on disk
	answers bool  // are kept, too, where a later turn may quote them
	room    int   // bytes in memory, when the disk takes no more

	mu      sync.Mutex
	file    *os.File // the last segment; nil is to be opened
	begin   int64    // offset of its first byte
	written int64    // bytes of the stream that are on disk
	kept    int64    // offset of the first byte that is still on disk
	waiting []byte   // behind them, in memory
	line    []byte
	ended   bool // nothing is added any more
	cutting bool // what is canceled is not added
	full    error
	wasFull error // the first time
	lost    int
	peak    int64         // of what waited to be handed over
	more    chan struct{} // told that there is more
}

// spoolAbout says whose records these are.
type spoolAbout struct {
	Run   string `json:"run"`
	Try   string `json:"try"`
	Share int    `json:"share"`
}

const (
	segmentBytes = 16 << 20
	aboutFile    = "about.json"
	memoryBytes  = 256 << 20
)

// newSpool makes a spool below a directory.
func newSpool(root string, about spoolAbout, most int64) (*spool, error) {
	dir := filepath.Join(root, fmt.Sprintf("%s-%s-%d", about.Run, about.Try, about.Share))
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a spool: %w (choose another place with --spool)", err)
	}
	text, err := json.Marshal(about)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, aboutFile), text, 0o600)
	}
	return &spool{dir: dir, about: about, most: most, room: memoryBytes, more: make(chan struct{}, 1)}, err
}

func (s *spool) segment(begin int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016d.jsonl", begin))
}

var errSpoolFull = errors.New("the spool is full")

// Add implements tacho.Sink.
func (s *spool) Add(r *tacho.Record) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutting && r.Failure != nil && r.Failure.Cause == tacho.Canceled {
		return nil
	}
	if s.line, err = s.append(s.line[:0], r); err != nil {
		return err
	}
	if len(s.waiting)+len(s.line) > s.room {
		s.lost++
		return nil // the farewell tells
	}
	s.waiting = append(s.waiting, s.line...)
	s.full = s.flush()
	s.wasFull = cmp.Or(s.wasFull, s.full)
	s.peak = max(s.peak, s.written+int64(len(s.waiting))-s.kept)
	s.wake()
	return nil
}

// append writes a record, after the answer that it stands for.
func (s *spool) append(line []byte, r *tacho.Record) ([]byte, error) {
	if s.answers && r.OK() && r.Turn < r.Turns-1 {
		text, err := json.Marshal(answered{r.Said, r.Session, r.Turn, r.SaidTokens()})
		if err != nil {
			return nil, err
		}
		line = append(append(line, text...), '\n')
	}
	line, err := recordjson.Append(line, r)
	return append(line, '\n'), err
}

// dropCanceled leaves out requests that are cut off from now on.
func (s *spool) dropCanceled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutting = true
}

// Close implements tacho.Sink: there will be no more records.
func (s *spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake()
	return nil
}

func (s *spool) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// flush writes what waits, as far as the disk takes it.
func (s *spool) flush() error {
	for len(s.waiting) > 0 {
		if s.written-s.kept+int64(len(s.waiting)) > s.most {
			return errSpoolFull
		}
		if s.file != nil && s.written-s.begin >= segmentBytes {
			_ = s.file.Close() // all of it is with the kernel
			s.file = nil
		}
		if s.file == nil {
			f, err := os.OpenFile(s.segment(s.written), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			s.file, s.begin = f, s.written
		}
		n, err := s.file.Write(s.waiting)
		s.written += int64(n)
		s.waiting = s.waiting[:copy(s.waiting, s.waiting[n:])]
		if err != nil {
			return err
		}
	}
	return nil
}

// size is the length of the stream so far, and whether it is all.
func (s *spool) size() (n int64, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written + int64(len(s.waiting)), s.ended
}

// read takes bytes of the stream from an offset on; none where there are none yet.
func (s *spool) read(at int64, into []byte) (int, error) {
	s.mu.Lock()
	written, waiting := s.written, s.waiting
	if at >= written {
		n := copy(into, waiting[min(at-written, int64(len(waiting))):])
		s.mu.Unlock()
		return n, nil
	}
	s.mu.Unlock()
	return readSegments(s.dir, at, into[:min(int64(len(into)), written-at)])
}

// handedOver says that all before an offset is in safe hands: its files go.
func (s *spool) handedOver(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset-s.kept < segmentBytes && s.full == nil && len(s.waiting) == 0 {
		return // it is not worth the look
	}
	for _, g := range segmentsOf(s.dir) {
		if end := g.begin + g.size; end <= offset && (s.file == nil || g.begin != s.begin) {
			_ = os.Remove(s.segment(g.begin)) // what is left is removed with the spool
			s.kept = max(s.kept, end)
		}
	}
	if offset == s.written && s.file != nil && s.written-s.begin > 0 && s.full != nil {
		_ = s.file.Close() // all of it was read
		_ = os.Remove(s.segment(s.begin))
		s.file, s.kept = nil, s.written
	}
	if len(s.waiting) > 0 {
		s.full = s.flush()
	}
}

// remove takes the spool away.
func (s *spool) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close() // nobody needs it any more
		s.file = nil
	}
	return os.RemoveAll(s.dir)
}

// A spoolState is what the beats and the farewell tell of a spool.
type spoolState struct {
	waiting int64 // bytes that were not handed over yet
	peak    int64 // of them
	lost    int   // records
	full    error // why records wait in memory; nil is no reason
	wasFull error // why they did
}

func (s *spool) state(handed int64) spoolState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return spoolState{s.written + int64(len(s.waiting)) - handed, s.peak, s.lost, s.full, s.wasFull}
}

// age is for how long nothing was added.
func (s *spool) age() time.Duration {
	var last time.Time
	entries, _ := os.ReadDir(s.dir) // none is as old as can be
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return time.Since(last)
}

// A segment is one file of a spool.
type segment struct{ begin, size int64 }

// segmentsOf are the files of a spool, in order.
func segmentsOf(dir string) (out []segment) {
	entries, err := os.ReadDir(dir) // sorted by name, and so by offset
	if err != nil {
		return nil
	}
	for _, e := range entries {
		var begin int64
		if _, err := fmt.Sscanf(e.Name(), "%d.jsonl", &begin); err != nil {
			continue
		}
		if info, err := e.Info(); err == nil {
			out = append(out, segment{begin, info.Size()})
		}
	}
	return out
}

// readSegments reads bytes from an offset on, of one file at most.
func readSegments(dir string, at int64, into []byte) (int, error) {
	for _, g := range segmentsOf(dir) {
		if at < g.begin || at >= g.begin+g.size {
			continue
		}
		f, err := os.Open((&spool{dir: dir}).segment(g.begin))
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }() // only read
		n, err := f.ReadAt(into[:min(int64(len(into)), g.begin+g.size-at)], at-g.begin)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	return 0, fmt.Errorf("byte %d of %s is gone", at, dir)
}

// leftSpool is a spool that a process left behind: what it had finished is in it.
func leftSpool(dir string) (*spool, error) {
	text, err := os.ReadFile(filepath.Join(dir, aboutFile))
	if err != nil {
		return nil, err
	}
	s := &spool{dir: dir, ended: true, most: 1 << 62, room: memoryBytes, more: make(chan struct{}, 1)}
	if err := json.Unmarshal(text, &s.about); err != nil {
		return nil, err
	}
	segments := segmentsOf(dir)
	if len(segments) == 0 {
		return s, nil
	}
	s.kept = segments[0].begin
	last := segments[len(segments)-1]
	s.written = last.begin + last.size
	return s, nil
}
