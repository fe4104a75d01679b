package sim

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// Truth is the server's log of one request. Times are nanoseconds of the wall
// clock; 0 means that the event did not happen.
type Truth struct {
	ID     string `json:"id"` // x-request-id, or an id assigned by the server
	Path   string `json:"path"`
	Status int    `json:"status"`          // of the HTTP response; 0 if none was sent
	Input  int    `json:"input"`           // prompt tokens
	Output int    `json:"output"`          // tokens written
	Asked  int    `json:"asked"`           // tokens of the complete answer
	Finish string `json:"finish"`          // "length" or "stop"; empty if the answer was interrupted
	Fault  string `json:"fault,omitempty"` // injected faults

	Cached      int `json:"cached,omitempty"`      // prompt tokens found in the prefix cache
	Preemptions int `json:"preemptions,omitempty"` // preemptions of the request

	Received int64   `json:"received,omitempty"` // the kernel received the first byte (see Server.Serve)
	Arrival  int64   `json:"arrival"`            // the server began to handle the request
	Queued   int64   `json:"queued"`             // the model received the request
	Admitted int64   `json:"admitted"`           // the model admitted the request
	First    int64   `json:"first"`              // the model generated the first token
	Last     int64   `json:"last"`               // the model generated the last token
	Writes   []int64 `json:"writes"`             // just before each write with tokens
	Counts   []int   `json:"counts,omitempty"`   // tokens in each write; omitted if always 1
	End      int64   `json:"end"`                // the server finished the request
}

// wrote records a write of n tokens at the given time.
func (t *Truth) wrote(at int64, n int) {
	if n != 1 && t.Counts == nil {
		t.Counts = slices.Repeat([]int{1}, len(t.Writes))
	}
	t.Writes = append(t.Writes, at)
	if t.Counts != nil {
		t.Counts = append(t.Counts, n)
	}
	t.Output += n
}

// keepLimit is the number of times kept in memory: 256 MiB. A server that runs for
// long drops the oldest requests.
const keepLimit = 32 << 20

// truthLog keeps truths in memory and writes them to a writer.
type truthLog struct {
	w      io.Writer
	forget bool
	limit  int // times kept

	mu    sync.Mutex
	kept  []Truth
	times int // in kept
	err   error
}

func (l *truthLog) add(t *Truth) {
	var line []byte
	if l.w != nil {
		line = append(appendJSON(nil, t), '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.forget {
		l.kept = append(l.kept, *t)
		l.times += len(t.Writes)
		for l.times > l.limit && len(l.kept) > 1 {
			l.times -= len(l.kept[0].Writes)
			l.kept[0] = Truth{} // the array stays in memory
			l.kept = l.kept[1:]
		}
	}
	if l.w != nil && l.err == nil {
		_, l.err = l.w.Write(line)
	}
}

func (l *truthLog) all() []Truth {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

func (l *truthLog) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return fmt.Errorf("write the truth log: %w", l.err)
	}
	return nil
}
