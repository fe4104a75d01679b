package workload

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

// traceSessions replays a trace by conversation. A request is due at its own time but
// waits for the previous request of its conversation. To find the conversations, the
// complete trace is read; only the position of each request stays in memory.
type traceSessions struct {
	*lineTrace
	kept   rows.Store
	places []rows.Ref // requests grouped by session; Tag is the number of the request
	starts []uint32   // first request of each session, then len(places)
	origin time.Duration
}

// newTraceSessions reads the trace and finds its conversations.
func newTraceSessions(w *lineTrace) (Workload, error) {
	countOnly := w.Options
	countOnly.Trace.countOnly = true
	c, err := openTrace(w.format, &countOnly)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &traceSessions{lineTrace: w}
	if err := t.kept.Open(w.Path); err != nil {
		return nil, err
	}
	var places []rows.Ref // in file order
	var session []uint32  // session of each place
	known := conversationNumbers{known: make(map[uint64]uint32, t.kept.Estimate())}
	for {
		row, _, err := c.next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		place, err := t.kept.Keep(c.line, c.lines.Offset())
		if err != nil {
			return nil, err
		}
		if place.Tag = uint32(c.index - 1); c.index > math.MaxUint32 {
			return nil, fmt.Errorf("%s: %s has more than %d requests; select a part with --trace-window or --trace-limit", w.format.name, w.Path, uint32(math.MaxUint32))
		}
		places, session = append(places, place), append(session, known.of(&row))
	}
	t.origin = c.origin
	w.recordLocked(c)
	t.places, t.starts = bySession(places, session, known.count)
	return t, t.kept.Done()
}

// conversationNumbers numbers conversations by the hashes of the ids to which later
// requests may refer.
type conversationNumbers struct {
	known map[uint64]uint32
	count uint32
}

// of returns the number of a request's conversation.
func (n *conversationNumbers) of(row *traceRow) uint32 {
	number, ok := n.known[hashOf(row.Parent)]
	if !ok || row.Parent == "" {
		number = n.count
		n.count++
	}
	if row.ID != "" {
		n.known[hashOf(row.ID)] = number
	} else if row.Parent != "" {
		n.known[hashOf(row.Parent)] = number
	}
	return number
}

// hashOf is FNV-1a, which gives the same result in every process.
func hashOf[T string | []byte](text T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

// bySession groups items by session and keeps their order within a session. starts[i] is
// the index of the first item of session i.
func bySession[T any](items []T, session []uint32, sessions uint32) (out []T, starts []uint32) {
	starts = make([]uint32, sessions+1)
	for _, s := range session {
		starts[s+1]++
	}
	for s := range sessions {
		starts[s+1] += starts[s]
	}
	next := append([]uint32{}, starts...)
	out = make([]T, len(items))
	for i, item := range items {
		out[next[session[i]]] = item
		next[session[i]]++
	}
	return out, starts
}

// at reads a request again and returns it with its due time.
func (t *traceSessions) at(p rows.Ref) (traceRow, time.Duration, error) {
	text, err := t.kept.Read(p)
	if err != nil {
		return traceRow{}, 0, fmt.Errorf("%s: %w", t.format.name, err)
	}
	row, err := t.format.parse(text, t.columns, &t.Trace)
	if err != nil {
		return row, 0, fmt.Errorf("%s: %s changed during the replay: %w", t.format.name, t.Path, err)
	}
	return row, t.Trace.scale(row.At - t.origin - t.Trace.Window.From), nil
}

// Arrivals implements tacho.Pacer. A conversation starts with its first request. If a
// request cannot be read, Arrivals yields an arrival anyway, so that the runner calls
// Session and gets the error.
func (t *traceSessions) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, start := range t.starts[:len(t.starts)-1] {
			_, due, err := t.at(t.places[start])
			if !yield(due) || err != nil {
				return
			}
		}
	}
}

// Session implements tacho.Source.
func (t *traceSessions) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(len(t.starts)-1) {
		return tacho.Session{}, io.EOF
	}
	s := tacho.Session{ID: i}
	begin := time.Duration(0)
	for k, p := range t.places[t.starts[i]:t.starts[i+1]] {
		row, due, err := t.at(p)
		if err != nil {
			return s, err
		}
		if k == 0 {
			begin = due
		}
		q := t.request(uint64(p.Tag), &row, t.Seed)
		q.Session, q.Turn = i, k
		s.Turns = append(s.Turns, tacho.Turn{At: due - begin, Request: q})
	}
	return s, nil
}
