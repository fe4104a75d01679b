package engine

import (
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/session"
)

// session runs the turns of a session. A failed turn ends the turns that depend on it,
// because they would quote a response that does not exist. at is the place in a burst of a
// single-turn session, or nil if the session is due now.
func (r *runner) session(it *item, slot time.Duration, at *burstRequest) {
	defer r.Live.Sessions.Add(1)
	if it.state == nil {
		it.request.Input = tacho.Input{} // the request is encoded, and a long prompt need not be kept twice
		r.send(it.call, it.request, it.due, slot, 0, at)
		return
	}
	t := &conversation{runner: r, State: it.state}
	due := t.Start(it.due, slot)
	t.spawn(due[1:])
	end, answer := r.send(it.call, it.request, it.due, slot, t.Turns(), nil)
	t.run(t.ended(0, end, answer))
	t.sides.Wait()
}

// sendInline sends the request of a session if possible without waiting, and reports
// whether it did. No goroutine waits for the response before its arrival, because waking one
// costs as much as sending. Only single-turn sessions in an open loop use sendInline.
func (r *runner) sendInline(it *item, slot time.Duration) bool {
	call, ok := it.call.(Starter)
	if !ok || it.state != nil || r.slots != nil {
		return false
	}
	it.request.Input = tacho.Input{} // as in session
	rec := tacho.NewRecord(r.Index, it.request, it.due)
	ctx := &deadline{of: r.deadlines}
	ctx.begin()
	rec.Slot, rec.Start = slot, r.now()
	r.Live.Started.Add(1)
	r.sessions.all.Add(1)
	if call.Start(ctx, r.epoch, rec, tacho.CallOptions{RelaxedEnd: true}, func(finish func(), whole bool) {
		run := r.sessions.Go
		if whole {
			run = r.sessions.GoShort
		}
		run(func() {
			defer r.sessions.done()
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
	r.sessions.done()
	r.Live.Started.Add(-1)
	ctx.cancel()
	return false
}

// A conversation is a session of several turns in progress. Each concurrent turn has a
// goroutine.
type conversation struct {
	*runner
	*session.State
	mu    sync.Mutex // guards the State
	sides sync.WaitGroup
}

// run runs the due turns and all turns that follow them.
func (t *conversation) run(due []session.Due) {
	for len(due) > 0 {
		t.spawn(due[1:])
		due = t.turn(due[0])
	}
}

// spawn starts turns on other goroutines.
func (t *conversation) spawn(due []session.Due) {
	for i := range due {
		t.sides.Go(func() { t.run(due[i : i+1]) })
	}
}

// ended records the end of a turn and returns the turns due next: none after a failure.
func (t *conversation) ended(turn int, at time.Duration, a tacho.Answer) []session.Due {
	if at == tacho.Never {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Ended(turn, at, a)
}

// turn waits until a turn is due, acquires a slot, sends the turn, and returns the
// turns due next.
func (t *conversation) turn(d session.Due) []session.Due {
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
	var sleeper sleeper // think times are long, so the runtime's timers are good enough
	if sleeper.until(t.arriving, t.epoch.Add(d.At)) != nil || t.acquire(t.arriving) != nil {
		return nil
	}
	end, answer := t.send(call, q, d.At, t.now(), t.Turns(), nil)
	return t.ended(d.Turn, end, answer)
}

// send sends a request that has a slot, releases the slot and passes on the record. send
// returns the end of the response, or tacho.Never after a failure, and the answer.
func (r *runner) send(call tacho.Call, q *tacho.Request, due, slot time.Duration, turns int, at *burstRequest) (time.Duration, tacho.Answer) {
	rec := tacho.NewRecord(r.Index, q, due)
	rec.Slot, rec.Turns = slot, turns
	r.do(call, rec, at)
	if at != nil && at.err != nil {
		return tacho.Never, tacho.Answer{} // the request was not sent and gets no record
	}
	r.slots.give()
	// The sink owns the record from here on.
	end, answer := rec.End, tacho.Answer{}
	if turns > 0 {
		answer = tacho.Answer{Text: rec.Answer, Tokens: rec.AnswerTokens()}
	}
	if !rec.OK() {
		end = tacho.Never
	}
	r.records <- rec
	if r.Count != nil && answer.Text != "" {
		answer.Tokens = r.Count(answer.Text) // a text may have other tokens when read than when written
	}
	return end, answer
}
