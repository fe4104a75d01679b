package workload

import (
	"errors"
	"io"
	"iter"
	"time"

	"tacho"
)

// traceSessions replays a trace by conversations: a request is due at its own
// time, but waits for the one before it in its conversation. To know which
// belong together the whole trace is read, so it is in memory.
type traceSessions struct {
	*lineTrace
	sessions [][]timedRow
}

type timedRow struct {
	traceRow
	due   time.Duration
	index uint64 // of the request in the trace
}

func newTraceSessions(w *lineTrace) (Workload, error) {
	c, err := openTrace(w.format, &w.Options)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &traceSessions{lineTrace: w}
	of := map[string]int{} // conversation by the id of its last request, or its own
	for {
		index := c.index
		row, due, err := c.next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		at, ok := of[row.Parent]
		if !ok || row.Parent == "" {
			at = len(t.sessions)
			t.sessions = append(t.sessions, nil)
		}
		t.sessions[at] = append(t.sessions[at], timedRow{row, due, index})
		if row.ID != "" {
			of[row.ID] = at
		} else if row.Parent != "" {
			of[row.Parent] = at
		}
	}
	w.note(c)
	return t, nil
}

// Arrivals implements tacho.Pacer: conversations begin with their first
// request.
func (t *traceSessions) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, s := range t.sessions {
			if !yield(s[0].due) {
				return
			}
		}
	}
}

// Session implements tacho.Source.
func (t *traceSessions) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(len(t.sessions)) {
		return tacho.Session{}, io.EOF
	}
	rows := t.sessions[i]
	s := tacho.Session{ID: i, Turns: make([]tacho.Turn, len(rows))}
	for k := range rows {
		q := t.request(rows[k].index, &rows[k].traceRow, t.Seed)
		q.Session, q.Turn = i, k
		s.Turns[k] = tacho.Turn{At: rows[k].due - rows[0].due, Request: q}
	}
	return s, nil
}
