package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/filelock"
	"github.com/tacho-bench/tacho/internal/recordjson"
)

// A spool keeps the records of a share until they are delivered, as a stream of lines in segment files. Each line is
// written before the next record is accepted, so a killed process loses no finished record. Records wait in memory if the
// disk is full.
//
// The spool is the Sink of the share. It never waits for a reader.
type spool struct {
	dir         string
	info        spoolInfo
	limit       int64 // maximum bytes on disk
	keepAnswers bool  // also store answers that later turns may quote
	memoryLimit int   // maximum bytes in memory
	added       chan struct{}

	mu           sync.Mutex
	file         *os.File  // the last segment, or nil
	segments     []segment // on disk
	written      int64     // bytes of the stream on disk, including deleted segments
	pending      []byte    // bytes after written, in memory
	line         []byte
	ended        bool // closed
	skipCanceled bool // skip canceled requests
	diskErr      error
	final        finalMessage // what it says about the spool
	changed      time.Time    // of a spool that an earlier process left: the last write
}

// A segment is one file of a spool. Its name is the offset of its first byte.
type segment struct{ start, end int64 }

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
	text, err := json.Marshal(about)
	err = errors.Join(err, os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, infoFile), text, 0o600))
	if err != nil {
		return nil, fmt.Errorf("make a spool: %w (choose another place with --spool)", err)
	}
	return &spool{dir: dir, info: about, limit: most, memoryLimit: spoolMemory, added: make(chan struct{}, 1)}, nil
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
	entries, err := os.ReadDir(dir) // sorted by name
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		if info.ModTime().After(s.changed) {
			s.changed = info.ModTime()
		}
		var begin int64
		if _, err := fmt.Sscanf(e.Name(), "%d.jsonl", &begin); err == nil {
			s.written = begin + info.Size()
			s.segments = append(s.segments, segment{begin, s.written})
		}
	}
	return s, err
}

func (s *spool) path(begin int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016d.jsonl", begin))
}

var errSpoolFull = errors.New("the spool is full")

// Add implements tacho.Sink.
func (s *spool) Add(r *tacho.Record) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skipCanceled && r.Failure != nil && r.Failure.Cause == tacho.Canceled {
		return nil // another agent may send it
	}
	if s.line, err = s.encode(s.line[:0], r); err != nil {
		return err
	}
	if len(s.pending)+len(s.line) > s.memoryLimit {
		s.final.Lost++
		return nil
	}
	s.pending = append(s.pending, s.line...)
	s.flush()
	s.final.MaxPending = max(s.final.MaxPending, s.written+int64(len(s.pending))-s.start())
	s.wake()
	return nil
}

// encode appends a record, preceded by its answer if a later turn may quote it.
func (s *spool) encode(line []byte, r *tacho.Record) ([]byte, error) {
	if s.keepAnswers && r.OK() && r.Turn < r.Turns-1 {
		text, err := json.Marshal(tacho.Answer{Text: r.Answer, Tokens: r.AnswerTokens()})
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

// wake signals new bytes, or the end.
func (s *spool) wake() {
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// start returns the offset of the first byte that is still on disk.
func (s *spool) start() int64 {
	if len(s.segments) == 0 {
		return s.written
	}
	return s.segments[0].start
}

// flush writes pending bytes until the disk is full.
func (s *spool) flush() {
	for s.diskErr = nil; len(s.pending) > 0 && s.diskErr == nil; {
		s.diskErr = s.writePending()
	}
	if s.diskErr != nil {
		s.final.SpoolError = cmp.Or(s.final.SpoolError, s.diskErr.Error())
	}
}

func (s *spool) writePending() error {
	if s.written-s.start()+int64(len(s.pending)) > s.limit {
		return errSpoolFull
	}
	if s.file != nil && s.written-s.segments[len(s.segments)-1].start >= segmentBytes {
		s.closeFile()
	}
	if s.file == nil {
		f, err := os.OpenFile(s.path(s.written), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		s.file, s.segments = f, append(s.segments, segment{s.written, s.written})
	}
	n, err := s.file.Write(s.pending)
	s.written += int64(n)
	s.segments[len(s.segments)-1].end = s.written
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	return err
}

func (s *spool) closeFile() {
	if s.file != nil {
		_ = s.file.Close() // the kernel has all bytes
		s.file = nil
	}
}

// size returns the length of the stream so far, and whether it is final.
func (s *spool) size() (n int64, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written + int64(len(s.pending)), s.ended
}

// read reads bytes of the stream from an offset, of at most one file. It returns 0 if there are none yet.
func (s *spool) read(at int64, into []byte) (int, error) {
	s.mu.Lock()
	if at >= s.written {
		defer s.mu.Unlock()
		return copy(into, s.pending[min(at-s.written, int64(len(s.pending))):]), nil
	}
	i := slices.IndexFunc(s.segments, func(g segment) bool { return at >= g.start && at < g.end })
	if i < 0 {
		defer s.mu.Unlock()
		return 0, fmt.Errorf("byte %d of %s was deleted", at, s.dir)
	}
	g := s.segments[i]
	s.mu.Unlock()
	f, err := os.Open(s.path(g.start))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // read only
	return f.ReadAt(into[:min(int64(len(into)), g.end-at)], at-g.start)
}

// confirm deletes segments before an offset, which the coordinator has acknowledged. The last one is deleted only if the
// disk is full: remove deletes it with the spool.
func (s *spool) confirm(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.segments) > 0 && s.segments[0].end <= offset && (len(s.segments) > 1 || s.diskErr != nil) {
		if len(s.segments) == 1 {
			s.closeFile()
		}
		_ = os.Remove(s.path(s.segments[0].start))
		s.segments = s.segments[1:]
	}
	s.flush()
}

// remove deletes the spool.
func (s *spool) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeFile()
	return os.RemoveAll(s.dir)
}

// lockSpool prevents two agents from using one spool. Each would deliver what the other is writing.
func lockSpool(root string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w (choose another place with --spool)", err)
	}
	if err := filelock.Lock(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("another agent uses the spool %s: give each agent its own --name or --spool", root)
	}
	return func() { _ = f.Close() }, nil
}

// StoredIdentity returns the key in a file, and creates one if there is none. A restarted agent has the same key, so the
// coordinator accepts records of the earlier process, and agents know the coordinator of an earlier run.
func StoredIdentity(path string) (*Identity, error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		pair, err := nkeys.CreateUser()
		if err == nil {
			seed, err = pair.Seed()
		}
		return &Identity{pair}, errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, seed, 0o600))
	}
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return nil, fmt.Errorf("%s is not the seed of an nkey: %w", path, err)
	}
	return &Identity{pair}, nil
}
