// Package session computes when each turn of a session is due: after which turns, after which pause. A State is a
// state machine without goroutines and without a clock. The engine drives a State on the wall clock, and prediction
// drives a State on a virtual clock.
package session

import (
	"fmt"
	"time"

	"github.com/tacho-bench/tacho"
)

// A State is a running session. Times are offsets from the start of the stage. A State is not safe for concurrent
// use.
type State struct {
	turns   []tacho.Turn
	due     time.Duration // when the session was due
	begun   time.Duration // when the session got its slot
	open    []int         // number of unfinished turns each turn waits for
	follow  [][]int       // turns waiting for each turn
	latest  []time.Duration
	answers []tacho.Answer
}

// Due is a turn ready to be sent, and its due time.
type Due struct {
	Turn int
	At   time.Duration
}

// New returns the State of a session. New returns an error if a turn waits for a later turn, or quotes the answer
// of a turn without waiting for it.
func New(s *tacho.Session) (*State, error) {
	if err := checkOrder(s); err != nil {
		return nil, err
	}
	n := len(s.Turns)
	t := &State{turns: s.Turns, open: make([]int, n), follow: make([][]int, n), latest: make([]time.Duration, n), answers: make([]tacho.Answer, n)}
	for i := range s.Turns {
		for _, before := range waitsFor(s.Turns, i) {
			t.open[i]++
			t.follow[before] = append(t.follow[before], i)
		}
	}
	return t, nil
}

// Turns returns the number of turns in the session.
func (t *State) Turns() int { return len(t.turns) }

// Start starts a session due at due that got its slot at begun. Start returns the turns waiting for no other turn,
// including the first.
func (t *State) Start(due, begun time.Duration) []Due {
	t.due, t.begun = due, begun
	out := []Due{{0, due}}
	for i := 1; i < len(t.turns); i++ {
		if t.open[i] == 0 {
			out = append(out, t.dueAfter(i, begun))
		}
	}
	return out
}

// Ended records the answer of a turn and returns the turns now due. Do not call Ended for a failed turn: the turns
// waiting for a failed turn would quote a missing answer, so they are never due.
func (t *State) Ended(turn int, at time.Duration, a tacho.Answer) (out []Due) {
	t.answers[turn] = a
	for _, i := range t.follow[turn] {
		t.latest[i] = max(t.latest[i], at)
		if t.open[i]--; t.open[i] == 0 {
			out = append(out, t.dueAfter(i, max(t.begun, t.latest[i])))
		}
	}
	return out
}

// dueAfter returns the due time of turn i if the turns it waits for ended at the time ended.
func (t *State) dueAfter(i int, ended time.Duration) Due {
	return Due{i, max(ended+t.turns[i].Think, t.due+t.turns[i].At)}
}

// Request returns the request of a turn, with quoted answers filled in.
func (t *State) Request(turn int) *tacho.Request {
	q := &t.turns[turn].Request
	q.Quote(t.answers)
	return q
}

// waitsFor returns the turns to finish before turn i.
func waitsFor(turns []tacho.Turn, i int) []int {
	if i > 0 && turns[i].After == nil {
		return []int{i - 1}
	}
	return turns[i].After
}

func checkOrder(s *tacho.Session) error {
	past := make([][]bool, len(s.Turns)) // past[i][k]: turn k is finished when turn i starts
	for i := range s.Turns {
		past[i] = make([]bool, i)
		for _, before := range waitsFor(s.Turns, i) {
			if before < 0 || before >= i {
				return fmt.Errorf("session %d: turn %d waits for turn %d, which must come before it", s.ID, i, before)
			}
			or(past[i], past[before])
			past[i][before] = true
		}
		for _, m := range s.Turns[i].Request.Input.Messages {
			if k := m.Answer - 1; k >= 0 && (k >= i || !past[i][k]) {
				return fmt.Errorf("session %d: turn %d quotes the answer of turn %d without waiting for it", s.ID, i, k)
			}
		}
	}
	return nil
}

// or sets a[i] for each i set in b. b is not longer than a.
func or(a, b []bool) {
	for i, set := range b {
		a[i] = a[i] || set
	}
}
