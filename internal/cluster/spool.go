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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/recordjson"
)

// A spool keeps the records of a share until they are delivered, as a stream of lines in
// segment files. Each line is written before the next record is accepted, so a killed process
// loses no finished record. Records wait in memory if the disk is full.
//
// The spool is the Sink of the share. It never waits for a reader.
type spool struct {
	dir         string
	info        spoolInfo
	limit       int64 // maximum bytes on disk
	keepAnswers bool  // also store answers that later turns may quote
	memoryLimit int   // maximum bytes in memory

	mu           sync.Mutex
	file         *os.File // the last segment, or nil
	segmentStart int64    // offset of its first byte
	written      int64    // bytes of the stream on disk, including deleted segments
	start        int64    // offset of the first byte that is still on disk
	pending      []byte   // bytes after written, in memory
	line         []byte
	ended        bool // closed
	skipCanceled bool // skip canceled requests
	diskErr      error
	firstDiskErr error // first error of the disk
	lost         int
	maxPending   int64         // maximum number of undelivered bytes
	added        chan struct{} // signals new bytes
}

// spoolInfo identifies the share of a spool.
type spoolInfo struct {
	Run     string `json:"run"`
	Attempt string `json:"try"`
	Share   int    `json:"share"`
}

const (
	segmentBytes = 16 << 20
	infoFile     = "about.json"
	spoolMemory  = 256 << 20
)

// newSpool creates a spool below a directory.
func newSpool(root string, about spoolInfo, most int64) (*spool, error) {
	dir := filepath.Join(root, fmt.Sprintf("%s-%s-%d", about.Run, about.Attempt, about.Share))
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a spool: %w (choose another place with --spool)", err)
	}
	text, err := json.Marshal(about)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, infoFile), text, 0o600)
	}
	return &spool{dir: dir, info: about, limit: most, memoryLimit: spoolMemory, added: make(chan struct{}, 1)}, err
}

func (s *spool) segment(begin int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016d.jsonl", begin))
}

var errSpoolFull = errors.New("the spool is full")

// Add implements tacho.Sink.
func (s *spool) Add(r *tacho.Record) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skipCanceled && r.Failure != nil && r.Failure.Cause == tacho.Canceled {
		return nil
	}
	if s.line, err = s.encode(s.line[:0], r); err != nil {
		return err
	}
	if len(s.pending)+len(s.line) > s.memoryLimit {
		s.lost++
		return nil // the final message reports it
	}
	s.pending = append(s.pending, s.line...)
	s.diskErr = s.flush()
	s.firstDiskErr = cmp.Or(s.firstDiskErr, s.diskErr)
	s.maxPending = max(s.maxPending, s.written+int64(len(s.pending))-s.start)
	s.wake()
	return nil
}

// encode appends a record, preceded by its answer if a later turn may quote it.
func (s *spool) encode(line []byte, r *tacho.Record) ([]byte, error) {
	if s.keepAnswers && r.OK() && r.Turn < r.Turns-1 {
		text, err := json.Marshal(answerLine{r.Answer, r.Session, r.Turn, r.AnswerTokens()})
		if err != nil {
			return nil, err
		}
		line = append(append(line, text...), '\n')
	}
	line, err := recordjson.Append(line, r)
	return append(line, '\n'), err
}

// dropCanceled skips canceled requests from now on.
func (s *spool) dropCanceled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipCanceled = true
}

// Close implements tacho.Sink. No records follow.
func (s *spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake()
	return nil
}

func (s *spool) wake() {
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// flush writes pending bytes until the disk is full.
func (s *spool) flush() error {
	for len(s.pending) > 0 {
		if s.written-s.start+int64(len(s.pending)) > s.limit {
			return errSpoolFull
		}
		if s.file != nil && s.written-s.segmentStart >= segmentBytes {
			_ = s.file.Close() // the kernel has all bytes
			s.file = nil
		}
		if s.file == nil {
			f, err := os.OpenFile(s.segment(s.written), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			s.file, s.segmentStart = f, s.written
		}
		n, err := s.file.Write(s.pending)
		s.written += int64(n)
		s.pending = s.pending[:copy(s.pending, s.pending[n:])]
		if err != nil {
			return err
		}
	}
	return nil
}

// size returns the length of the stream so far, and whether it is final.
func (s *spool) size() (n int64, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written + int64(len(s.pending)), s.ended
}

// read reads bytes of the stream from an offset. It returns 0 if there are none yet.
func (s *spool) read(at int64, into []byte) (int, error) {
	s.mu.Lock()
	written, waiting := s.written, s.pending
	if at >= written {
		n := copy(into, waiting[min(at-written, int64(len(waiting))):])
		s.mu.Unlock()
		return n, nil
	}
	s.mu.Unlock()
	return readSegments(s.dir, at, into[:min(int64(len(into)), written-at)])
}

// confirm deletes segments before an offset, which the coordinator has acknowledged.
func (s *spool) confirm(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset-s.start < segmentBytes && s.diskErr == nil && len(s.pending) == 0 {
		return // nothing to delete or to write
	}
	for _, g := range segmentsOf(s.dir) {
		if end := g.start + g.size; end <= offset && (s.file == nil || g.start != s.segmentStart) {
			_ = os.Remove(s.segment(g.start)) // remove deletes the rest with the spool
			s.start = max(s.start, end)
		}
	}
	if offset == s.written && s.file != nil && s.written-s.segmentStart > 0 && s.diskErr != nil {
		_ = s.file.Close() // all of it was read
		_ = os.Remove(s.segment(s.segmentStart))
		s.file, s.start = nil, s.written
	}
	if len(s.pending) > 0 {
		s.diskErr = s.flush()
	}
}

// remove deletes the spool.
func (s *spool) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close() // its content is not needed any more
		s.file = nil
	}
	return os.RemoveAll(s.dir)
}

// A spoolStatus is the status of a spool for heartbeats and the final message.
type spoolStatus struct {
	pending      int64 // undelivered bytes
	maxPending   int64 // maximum of pending
	lost         int   // dropped records
	diskErr      error // why records wait in memory, or nil
	firstDiskErr error // why records waited in memory, or nil
}

func (s *spool) status(handed int64) spoolStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return spoolStatus{s.written + int64(len(s.pending)) - handed, s.maxPending, s.lost, s.diskErr, s.firstDiskErr}
}

// idleTime returns the time since the last write.
func (s *spool) idleTime() time.Duration {
	var last time.Time
	entries, _ := os.ReadDir(s.dir) // without entries, idleTime is very long
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return time.Since(last)
}

// A segment is one file of a spool.
type segment struct{ start, size int64 }

// segmentsOf returns the files of a spool in order.
func segmentsOf(dir string) (out []segment) {
	entries, err := os.ReadDir(dir) // sorted by name, which is the offset
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

// readSegments reads bytes from an offset, of at most one file.
func readSegments(dir string, at int64, into []byte) (int, error) {
	for _, g := range segmentsOf(dir) {
		if at < g.start || at >= g.start+g.size {
			continue
		}
		f, err := os.Open((&spool{dir: dir}).segment(g.start))
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }() // read only
		n, err := f.ReadAt(into[:min(int64(len(into)), g.start+g.size-at)], at-g.start)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	return 0, fmt.Errorf("byte %d of %s was deleted", at, dir)
}

// openSpool opens a spool that an earlier process left.
func openSpool(dir string) (*spool, error) {
	text, err := os.ReadFile(filepath.Join(dir, infoFile))
	if err != nil {
		return nil, err
	}
	s := &spool{dir: dir, ended: true, limit: 1 << 62, memoryLimit: spoolMemory, added: make(chan struct{}, 1)}
	if err := json.Unmarshal(text, &s.info); err != nil {
		return nil, err
	}
	segments := segmentsOf(dir)
	if len(segments) == 0 {
		return s, nil
	}
	s.start = segments[0].start
	last := segments[len(segments)-1]
	s.written = last.start + last.size
	return s, nil
}
