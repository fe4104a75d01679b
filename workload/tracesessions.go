package workload

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"tacho"
	"tacho/internal/rows"
)

// traceSessions replays a trace by conversations: a request is due at its own
// time, but waits for the one before it in its conversation. To know which
// belong together the whole trace is read; of each request its place stays in
// memory.
type traceSessions struct {
	*lineTrace
	kept   rows.Kept
	places []rows.Place // of all sessions, one after the other; the tag is the number of the request
	starts []uint32     // of the sessions in places, and the end of the last
	origin time.Duration
}

// newTraceSessions reads the trace and finds its conversations.
func newTraceSessions(w *lineTrace) (Workload, error) {
	brief := w.Options
	brief.Trace.brief = true
	c, err := openTrace(w.format, &brief)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &traceSessions{lineTrace: w}
	if err := t.kept.Open(w.Path); err != nil {
		return nil, err
	}
	var places []rows.Place // in the order of the file
	var session []uint32    // of each
	known := talkNumbers{known: make(map[uint64]uint32, t.kept.Guess())}
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
			return nil, fmt.Errorf("%s: %s has more than %d requests: cut it with --trace-window or --trace-limit", w.format.name, w.Path, uint32(math.MaxUint32))
		}
		places, session = append(places, place), append(session, known.of(&row))
	}
	t.origin = c.origin
	w.note(c)
	t.places, t.starts = bySession(places, session, known.count)
	return t, t.kept.Done()
}

// talkNumbers gives conversations their numbers, by the hashes of the ids that
// later requests may refer to.
type talkNumbers struct {
	known map[uint64]uint32
	count uint32
}

// of is the number of the conversation that a request belongs to.
func (n *talkNumbers) of(row *traceRow) uint32 {
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

// hashOf is FNV-1a, the same in every process.
func hashOf[T string | []byte](text T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

// bySession puts items in the order of their sessions, and within these in the
// order they have. starts[i] is where session i begins.
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

// at reads a request again, and tells when it is due.
func (t *traceSessions) at(p rows.Place) (traceRow, time.Duration, error) {
	text, err := t.kept.Read(p)
	if err != nil {
		return traceRow{}, 0, fmt.Errorf("%s: %w", t.format.name, err)
	}
	row, err := t.format.parse(text, t.columns, &t.Trace)
	if err != nil {
		return row, 0, fmt.Errorf("%s: %s has changed while it was replayed: %w", t.format.name, t.Path, err)
	}
	return row, t.Trace.scale(row.At - t.origin - t.Trace.Window.From), nil
}

// Arrivals implements tacho.Pacer: conversations begin with their first
// request. Where one cannot be read there is an arrival nevertheless, so that
// the source is asked for it and can say why.
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
