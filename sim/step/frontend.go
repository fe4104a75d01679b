package step

import (
	"slices"
	"time"
)

// A frontEnd is where requests are before the scheduler can see them. They
// come out in the order in which they went in.
type frontEnd struct {
	fixed, perRequest time.Duration
	holdsBurst        bool
	queue             fifo
	told              int            // of those in it, the first that fresh has told of
	burst             *time.Duration // when the last request of the latest burst is through
}

// longestHold bounds how long a burst holds its first request back, so that
// arrivals faster than the front end cannot starve the engine for ever.
const longestHold = 2 * time.Second

// sameBurst is how late a request may come and still be one of a burst: what is sent
// at once over a network arrives one after the other.
const sameBurst = 5 * time.Millisecond

// A burstSlot is a request's place in the front end.
type burstSlot struct {
	arrival time.Duration
	through time.Duration  // its own work is done
	burst   *time.Duration // the work of its whole burst is done
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

// ready is when the next request comes out; false: there is none.
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

// pop takes out the next request that is ready at now, or returns nil.
func (f *frontEnd) pop(now time.Duration) *seq {
	at, ok := f.ready()
	if !ok || at > now {
		return nil
	}
	f.told = max(f.told-1, 0)
	s := f.queue.pop()
	s.queued = at
	return s
}

// fresh are the requests that have come out by now and were not among those of
// the last call. Nobody has taken them yet.
func (f *frontEnd) fresh(now time.Duration) []*seq {
	from := f.queue.head + f.told
	to := from
	for to < len(f.queue.items) && f.queue.items[to].slot.through+f.fixed <= now {
		to++
	}
	f.told += to - from
	return f.queue.items[from:to]
}

// A fifo is a queue that passes over requests that are gone.
type fifo struct{ queue[*seq] }

// peek returns the first request that is not gone, or nil.
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

// unpop puts the one back in front that was taken last.
func (q *fifo) unpop(s *seq) {
	if q.head == 0 {
		q.items = slices.Insert(q.items, 0, s)
		return
	}
	q.head--
	q.items[q.head] = s
}
