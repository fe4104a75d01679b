package session

import (
	"slices"
	"time"

	"tacho"
)

// A Begun is a session that somebody else has begun: some of its turns are over.
type Begun struct {
	ID   uint64 `json:"id"`
	Over []Over `json:"over"`
}

// An Over is a turn that is over.
type Over struct {
	Turn   int           `json:"turn"`
	Due    time.Duration `json:"due_ns"`
	End    time.Duration `json:"end_ns"` // Never is one that failed: what waits for it is never due
	Answer tacho.Answer  `json:"answer"`
}

// Rest is what is left of the session, as a session of its own: its turns keep their
// numbers, and have the answers that are known in their place. It has no turns where
// nothing is left. It was due at the time that is returned, and now at the latest.
func (b *Begun) Rest(s tacho.Session, now time.Duration) (tacho.Session, time.Duration) {
	over := make([]*Over, len(s.Turns))
	began := now
	for i := range b.Over {
		if o := &b.Over[i]; o.Turn >= 0 && o.Turn < len(over) {
			over[o.Turn] = o
			began = min(began, o.Due)
		}
	}
	place := make([]int, len(s.Turns)) // in the rest, from 1 on; 0 is not there
	rest, due := tacho.Session{ID: s.ID}, now
	for i, t := range s.Turns {
		ended, after, comes := left(waitsFor(s.Turns, i), over, place)
		if over[i] != nil || !comes {
			continue
		}
		at := max(ended+t.Think, began+t.At)
		if len(rest.Turns) == 0 {
			due = min(at, now)
		}
		if t.At = max(at-due, 0); len(after) == 0 {
			t.Think = 0 // it is in At
		}
		t.After = after
		known(&t.Request, over, place)
		rest.Turns = append(rest.Turns, t)
		place[i] = len(rest.Turns)
	}
	return rest, due
}

// left is when the last of the turns that are waited for ended, and those that are
// still to come, by their places. Nobody comes who waits for one that failed.
func left(waits []int, over []*Over, place []int) (ended time.Duration, after []int, comes bool) {
	after = []int{}
	for _, before := range waits {
		switch o := over[before]; {
		case o == nil && place[before] == 0, o != nil && o.End == tacho.Never:
			return 0, nil, false
		case o == nil:
			after = append(after, place[before]-1)
		default:
			ended = max(ended, o.End)
		}
	}
	return ended, after, true
}

// known puts answers that are known into a request that quotes them.
func known(q *tacho.Request, over []*Over, place []int) {
	q.Input.Messages = slices.Clone(q.Input.Messages)
	for i := range q.Input.Messages {
		m := &q.Input.Messages[i]
		k := m.Answer - 1
		if k < 0 || k >= len(over) {
			continue
		}
		if m.Answer = place[k]; over[k] != nil {
			m.Answer, m.Content = 0, over[k].Answer.Text
			q.InputTokens += over[k].Answer.Tokens
		}
	}
}
