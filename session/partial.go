package session

import (
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
)

// A Partial is a session started by another agent, with some turns finished.
type Partial struct {
	ID       uint64         `json:"id"`
	Finished []FinishedTurn `json:"over"`
}

// A FinishedTurn is a completed or failed turn of a Partial.
type FinishedTurn struct {
	Turn   int           `json:"turn"`
	Due    time.Duration `json:"due_ns"`
	End    time.Duration `json:"end_ns"` // Never if the turn failed: turns waiting for a failed turn are never due
	Answer tacho.Answer  `json:"answer"`
}

// Remaining returns a session with the unfinished turns of s, and its due time, which is now or earlier. The turns
// keep their numbers, and known answers replace references to finished turns. If no turn is left, the session
// contains no turns.
func (b *Partial) Remaining(s tacho.Session, now time.Duration) (tacho.Session, time.Duration) {
	over := make([]*FinishedTurn, len(s.Turns))
	began := now
	for i := range b.Finished {
		if o := &b.Finished[i]; o.Turn >= 0 && o.Turn < len(over) {
			over[o.Turn] = o
			began = min(began, o.Due)
		}
	}
	place := make([]int, len(s.Turns)) // index+1 in the remaining session; 0 if the turn is not part of it
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
			t.Think = 0 // At includes the pause
		}
		t.After = after
		known(&t.Request, over, place)
		rest.Turns = append(rest.Turns, t)
		place[i] = len(rest.Turns)
	}
	return rest, due
}

// left returns the time when the last finished turn of waits ended, and the places of the unfinished turns. If one
// of the turns failed, comes is false.
func left(waits []int, over []*FinishedTurn, place []int) (ended time.Duration, after []int, comes bool) {
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

// known replaces references to finished turns in a request by their answers.
func known(q *tacho.Request, over []*FinishedTurn, place []int) {
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
