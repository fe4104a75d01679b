package step

import (
	"slices"
	"time"
)

// A frontEnd holds requests before the scheduler can see them. Requests leave in
// the order of arrival.
type frontEnd struct {
	fixed, perRequest time.Duration
	holdsBurst        bool
	queue             fifo
	reported          int            // requests of the queue already returned by fresh
	burst             *time.Duration // when the last request of the latest burst is done
}

// longestHold bounds how long a burst delays its first request, so that arrivals
// faster than the front end cannot starve the engine.
const longestHold = 2 * time.Second

// sameBurst is the largest gap between two requests of a burst. Requests sent
// together over a network arrive one after the other.
const sameBurst = 5 * time.Millisecond

// A burstSlot is a request's place in the front end.
type burstSlot struct {
	arrival time.Duration
	through time.Duration  // when the work on the request is done
	burst   *time.Duration // when the work on the whole burst is done
}

func newFrontEnd(c FrontEnd) frontEnd {
	return frontEnd{fixed: milliseconds(c.FixedMs), perRequest: milliseconds(c.PerRequestMs), holdsBurst: c.HoldsBurst}
}

func (f *frontEnd) add(now time.Duration, s *seq) {
	late := time.Duration(0)
	if f.holdsBurst {
		late = sameBurst
	}
	if f.burst == nil || now > *f.burst+late {
		start := now
		f.burst = &start
	}
	*f.burst = max(*f.burst, now) + f.perRequest
	s.slot = burstSlot{arrival: now, through: *f.burst, burst: f.burst}
	f.queue.push(s)
}

// ready returns when the next request leaves, and false if there is none.
func (f *frontEnd) ready() (time.Duration, bool) {
	s := f.queue.peek()
	if s == nil {
		return 0, false
	}
	at := s.slot.through
	if f.holdsBurst {
		at = min(*s.slot.burst, max(at, s.slot.arrival+longestHold))
	}
	return at + f.fixed, true
}

// pop removes and returns the next request if it is ready at now; otherwise it
// returns nil.
func (f *frontEnd) pop(now time.Duration) *seq {
	at, ok := f.ready()
	if !ok || at > now {
		return nil
	}
	f.reported = max(f.reported-1, 0)
	s := f.queue.pop()
	s.queued = at
	return s
}

// fresh returns the requests that became ready by now and were not returned by an
// earlier call. They stay in the queue.
func (f *frontEnd) fresh(now time.Duration) []*seq {
	from := f.queue.head + f.reported
	to := from
	for to < len(f.queue.items) && f.queue.items[to].slot.through+f.fixed <= now {
		to++
	}
	f.reported += to - from
	return f.queue.items[from:to]
}

// A fifo is a queue that skips finished and cancelled requests.
type fifo struct{ queue[*seq] }

// peek returns the first request, or nil if the queue is empty.
func (q *fifo) peek() *seq {
	for q.len() > 0 {
		if s := q.first(); !s.gone() {
			return s
		}
		q.queue.pop()
	}
	return nil
}

func (q *fifo) pop() *seq {
	s := q.peek()
	if s != nil {
		q.queue.pop()
	}
	return s
}

// unpop puts the last popped request back in front.
func (q *fifo) unpop(s *seq) {
	if q.head == 0 {
		q.items = slices.Insert(q.items, 0, s)
		return
	}
	q.head--
	q.items[q.head] = s
}
