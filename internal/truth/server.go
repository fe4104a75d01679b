// Package truth contains servers with known limits: queues with hidden service
// times, batching engines, rate limiters, finite queues, and servers that fail,
// stall, leak, scale or warm up. They share no code with the simulated engine.
// Tests run the commands against them in virtual time, with parameters drawn from a
// seed, and compare the results with long runs.
package truth

import (
	"container/heap"
	"net/http"
	"time"

	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/sim/step"
)

// A job is a request at a server.
type job struct {
	step.Request
	came   time.Duration
	tokens []time.Duration // times of the tokens
	gone   bool            // the client cancelled the request
}

// An event happens at a server at a time.
type event struct {
	at    time.Duration
	order uint64 // of events at the same time
	do    func(deliver func(*step.Emission))
}

// agenda is a heap of events. Embedding an agenda gives a server the methods Next
// and Advance.
type agenda struct {
	events []event
	order  uint64
	now    time.Duration
	jobs   map[uint64]*job
}

func (a *agenda) at(t time.Duration, do func(deliver func(*step.Emission))) {
	a.order++
	heap.Push(a, event{max(t, a.now), a.order, do})
}

// Next implements predict.Server.
func (a *agenda) Next() (time.Duration, bool) {
	if len(a.events) == 0 {
		return 0, false
	}
	return a.events[0].at, true
}

// Advance implements predict.Server.
func (a *agenda) Advance(now time.Duration, deliver func(*step.Emission)) {
	for len(a.events) > 0 && a.events[0].at <= now {
		e := heap.Pop(a).(event)
		a.now = e.at
		e.do(deliver)
	}
	a.now = max(a.now, now)
}

// Cancel implements predict.Server.
func (a *agenda) Cancel(_ time.Duration, id uint64) []time.Duration {
	if j := a.jobs[id]; j != nil {
		j.gone = true
	}
	return nil
}

// accept registers a request.
func (a *agenda) accept(now time.Duration, r *step.Request) *job {
	if a.jobs == nil {
		a.jobs = map[uint64]*job{}
	}
	j := &job{Request: *r, came: now}
	a.jobs[r.ID] = j
	return j
}

// finish delivers the whole answer of a job whose last token was generated now.
func (a *agenda) finish(j *job, deliver func(*step.Emission)) {
	delete(a.jobs, j.ID)
	if j.gone {
		return
	}
	last := len(j.tokens) - 1
	first := j.tokens[0]
	deliver(&step.Emission{
		ID: j.ID, Owner: j.Owner, At: j.tokens[last], Made: j.tokens[last], Tokens: 1, Earlier: j.tokens[:last], First: true, Last: true,
		Accepted: j.came, Queued: j.came, Admitted: first, FirstMade: first, Finish: step.FinishLength, Ends: j.tokens[last],
	})
}

// refused is the error if a server rejects a request with a status.
func refused(status int) error {
	return &predict.RefusedError{Status: status, Message: http.StatusText(status)}
}

// Len implements heap.Interface.
func (a *agenda) Len() int { return len(a.events) }

// Less implements heap.Interface.
func (a *agenda) Less(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	return x.at < y.at || x.at == y.at && x.order < y.order
}

// Swap implements heap.Interface.
func (a *agenda) Swap(i, j int) { a.events[i], a.events[j] = a.events[j], a.events[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { a.events = append(a.events, x.(event)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(a.events) - 1
	e := a.events[last]
	a.events = a.events[:last]
	return e
}
