package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tacho"
)

// A talk is a session under way. Its turns may run side by side, each in a
// goroutine of its own; what a turn leaves behind is read only by those that
// wait for it.
type talk struct {
	turns   []tacho.Turn
	due     time.Duration // when the session was to begin
	begun   time.Duration // when it was let go
	answers []tacho.Answer
	ends    []time.Duration // tacho.Never of a turn that failed or was not sent
}

// checkOrder complains about turns that wait for later ones, and about those
// that quote the answer of a turn they do not wait for.
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

// session runs the turns of a session. A failed turn ends what waits for it:
// that would quote an answer that never came.
func (r *runner) session(ctx context.Context, it *item, slot time.Duration) {
	defer r.Live.Sessions.Add(1)
	turns := it.session.Turns
	if len(turns) == 1 {
		turns[0].Request.Input = tacho.Input{} // it is encoded; a long prompt need not be kept twice
		r.send(ctx, it.call, &turns[0].Request, it.due, slot, 0)
		return
	}
	r.converse(ctx, it, slot)
}

// converse runs the turns of a session that has several.
func (r *runner) converse(ctx context.Context, it *item, slot time.Duration) {
	turns := it.session.Turns
	t := &talk{turns: turns, due: it.due, begun: slot, answers: make([]tacho.Answer, len(turns)), ends: make([]time.Duration, len(turns))}
	over := make([]chan struct{}, len(turns))
	for i := range over {
		over[i] = make(chan struct{})
		t.ends[i] = tacho.Never
	}
	side := false
	for i := range turns {
		side = side || turns[i].After != nil
	}
	var group sync.WaitGroup
	for i := range turns {
		one := func() {
			defer close(over[i])
			for _, before := range waitsFor(t.turns, i) {
				<-over[before]
			}
			r.turn(ctx, t, i, it, slot)
		}
		if side {
			group.Go(one)
		} else {
			one()
		}
	}
	group.Wait()
}

// waitsFor are the turns that must be over before turn i.
func waitsFor(turns []tacho.Turn, i int) []int {
	if i > 0 && turns[i].After == nil {
		return []int{i - 1}
	}
	return turns[i].After
}

// turn sends turn i after the pause it asks for, if all it waits for went well.
func (r *runner) turn(ctx context.Context, t *talk, i int, it *item, slot time.Duration) {
	q := &t.turns[i].Request
	due, call := it.due, it.call
	if i > 0 {
		due = t.begun
		for _, before := range waitsFor(t.turns, i) {
			if t.ends[before] == tacho.Never {
				return
			}
			due = max(due, t.ends[before])
		}
		due = max(due+t.turns[i].Think, t.due+t.turns[i].At)
		q.Quote(t.answers)
		var err error
		if call, err = r.Backend.Prepare(q); err != nil {
			rec := unsent(r.Index, q, due, err)
			rec.Turns = len(t.turns)
			r.records <- rec
			return
		}
		var nap nap // a think time is long; the runtime's timers will do
		if nap.until(ctx, r.epoch.Add(due)) != nil {
			return
		}
		if r.slots.take(ctx) != nil {
			return
		}
		slot = r.now()
	}
	t.ends[i], t.answers[i] = r.send(ctx, call, q, due, slot, len(t.turns))
}

// send sends a request that has a slot, gives the slot back and hands the
// record on. It returns when the response ended, tacho.Never if it failed, and
// what the server said.
func (r *runner) send(ctx context.Context, call tacho.Call, q *tacho.Request, due, slot time.Duration, turns int) (time.Duration, tacho.Answer) {
	rec := newRecord(r.Index, q, due)
	rec.Slot, rec.Turns = slot, turns
	r.do(ctx, call, rec)
	r.slots.give()
	// The record is the sink's from here on.
	end, answer := rec.End, tacho.Answer{}
	if turns > 0 {
		answer = tacho.Answer{Text: rec.Said, Tokens: rec.SaidTokens()}
	}
	rec.Said = ""
	if !rec.OK() {
		end = tacho.Never
	}
	r.records <- rec
	if r.Count != nil && answer.Text != "" {
		answer.Tokens = r.Count(answer.Text) // a text may be read in other tokens than it was written in
	}
	return end, answer
}
