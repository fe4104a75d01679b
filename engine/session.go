package engine

import (
	"sync"
	"time"

	"tacho"
	"tacho/session"
)

// session runs the turns of a session. A failed turn ends what waits for it:
// that would quote an answer that never came. at is where it waits until it is due,
// if it has one turn alone; nil where it is.
func (r *runner) session(it *item, slot time.Duration, at *place) {
	defer r.Live.Sessions.Add(1)
	if it.talk == nil {
		it.request.Input = tacho.Input{} // it is encoded; a long prompt need not be kept twice
		r.send(it.call, it.request, it.due, slot, 0, at)
		return
	}
	t := &talk{runner: r, State: it.talk}
	due := t.Start(it.due, slot)
	t.aside(due[1:])
	end, answer := r.send(it.call, it.request, it.due, slot, t.Turns(), nil)
	t.goOn(t.ended(0, end, answer))
	t.sides.Wait()
}

// sendHere sends the request of a session, if it can be sent at once, and says
// whether it was. Nobody waits for the answer until it comes: to wake somebody for
// that costs as much as to send it. It is for sessions of one turn in an open loop.
func (r *runner) sendHere(it *item, slot time.Duration) bool {
	call, ok := it.call.(Starter)
	if !ok || it.talk != nil || r.slots != nil {
		return false
	}
	it.request.Input = tacho.Input{} // as above
	rec := tacho.NewRecord(r.Index, it.request, it.due)
	ctx := &deadline{of: r.deadlines}
	ctx.begin()
	rec.Slot, rec.Start = slot, r.now()
	r.Live.Started.Add(1)
	r.sessions.hold()
	if call.Start(ctx, r.epoch, rec, tacho.CallOptions{Unhurried: true}, func(finish func(), whole bool) {
		run := r.sessions.Go
		if whole {
			run = r.sessions.Soon
		}
		run(func() {
			defer r.sessions.release()
			finish()
			ctx.cancel()
			if rec.End == tacho.Never {
				rec.End = r.now()
			}
			r.records <- rec
			r.Live.Sessions.Add(1)
		})
	}) {
		return true
	}
	r.sessions.release()
	r.Live.Started.Add(-1)
	ctx.cancel()
	return false
}

// A talk is a session of several turns under way. Turns that may run side by
// side each have a goroutine.
type talk struct {
	*runner
	*session.State
	mu    sync.Mutex // of the State
	sides sync.WaitGroup
}

// goOn runs the turns that are due and all that follows them.
func (t *talk) goOn(due []session.Due) {
	for len(due) > 0 {
		t.aside(due[1:])
		due = t.turn(due[0])
	}
}

// aside starts turns beside the one that goes on here.
func (t *talk) aside(due []session.Due) {
	for i := range due {
		t.sides.Go(func() { t.goOn(due[i : i+1]) })
	}
}

// ended notes the end of a turn and returns what is due then: nothing, if it
// failed.
func (t *talk) ended(turn int, at time.Duration, a tacho.Answer) []session.Due {
	if at == tacho.Never {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Ended(turn, at, a)
}

// turn sends a turn when it is due and has a slot, and returns what is due
// after it.
func (t *talk) turn(d session.Due) []session.Due {
	t.mu.Lock()
	q := t.Request(d.Turn)
	t.mu.Unlock()
	call, err := t.Backend.Prepare(q)
	if err != nil {
		rec := unsent(t.Index, q, d.At, err)
		rec.Turns = t.Turns()
		t.records <- rec
		return nil
	}
	var nap nap // a think time is long; the runtime's timers will do
	if nap.until(t.arriving, t.epoch.Add(d.At)) != nil || t.slots.take(t.arriving) != nil {
		return nil
	}
	end, answer := t.send(call, q, d.At, t.now(), t.Turns(), nil)
	return t.ended(d.Turn, end, answer)
}

// send sends a request that has a slot, gives the slot back and hands the
// record on. It returns when the response ended, tacho.Never if it failed, and
// what the server said.
func (r *runner) send(call tacho.Call, q *tacho.Request, due, slot time.Duration, turns int, at *place) (time.Duration, tacho.Answer) {
	rec := tacho.NewRecord(r.Index, q, due)
	rec.Slot, rec.Turns = slot, turns
	r.do(call, rec, at)
	if at != nil && at.err != nil {
		return tacho.Never, tacho.Answer{} // it was not sent, and is not on record
	}
	r.slots.give()
	// The record is the sink's from here on.
	end, answer := rec.End, tacho.Answer{}
	if turns > 0 {
		answer = tacho.Answer{Text: rec.Said, Tokens: rec.SaidTokens()}
	}
	if !rec.OK() {
		end = tacho.Never
	}
	r.records <- rec
	if r.Count != nil && answer.Text != "" {
		answer.Tokens = r.Count(answer.Text) // a text may be read in other tokens than it was written in
	}
	return end, answer
}
