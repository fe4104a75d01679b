// Package session says what is due after what in a session: turns, pauses and
// joins. It is a state machine without a goroutine and without a clock. The
// engine drives it on the wall clock, prediction on a virtual one.
package session

import (
	"fmt"
	"time"

	"tacho"
)

// A State is a session under way. Times are offsets from the start of the
// stage. It is not safe for concurrent use.
type State struct {
	turns   []tacho.Turn
	due     time.Duration // when the session was to begin
	begun   time.Duration // when it was let go
	open    []int         // how many turns each turn still waits for
	follow  [][]int       // the turns that wait for each turn
	latest  []time.Duration
	answers []tacho.Answer
}

// Due is a turn that may be sent, and when.
type Due struct {
	Turn int
	At   time.Duration
}

// New takes a session up. It complains about turns that wait for later ones,
// and about those that quote the answer of a turn they do not wait for.
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

// Turns is how many turns the session has.
func (t *State) Turns() int { return len(t.turns) }

// Start lets a session go that was due at due and got its slot at begun. It
// returns the turns that wait for no other; the first turn is one of them.
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

// Ended notes that a turn was answered, and returns the turns that waited only
// for this. A turn that failed is never ended: what waits for it would quote an
// answer that never came, and so is never due.
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

// dueAfter is when a turn is due if what it waits for was over at the time.
func (t *State) dueAfter(i int, over time.Duration) Due {
	return Due{i, max(over+t.turns[i].Think, t.due+t.turns[i].At)}
}

// Request is what a turn asks, with the answers that it quotes in their place.
func (t *State) Request(turn int) *tacho.Request {
	q := &t.turns[turn].Request
	q.Quote(t.answers)
	return q
}

// waitsFor are the turns that must be over before turn i.
func waitsFor(turns []tacho.Turn, i int) []int {
	if i > 0 && turns[i].After == nil {
		return []int{i - 1}
	}
	return turns[i].After
}

func checkOrder(s *tacho.Session) error {
	past := make([][]bool, len(s.Turns)) // past[i][k]: turn k is over when turn i starts
	for i := range s.Turns {
		past[i] = make([]bool, i)
		for _, before := range waitsFor(s.Turns, i) {
			if before < 0 || before >= i {
				return fmt.Errorf("session %d: turn %d waits for turn %d, which is not before it", s.ID, i, before)
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

// or sets in a what is set in b, which is not longer.
func or(a, b []bool) {
	for i, set := range b {
		a[i] = a[i] || set
	}
}
