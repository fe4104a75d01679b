package step

import "time"

// A frontEnd is where requests are before the scheduler can see them. They
// come out in the order in which they went in.
type frontEnd struct {
	fixed, perRequest time.Duration
	holdsBurst        bool
	queue             fifo
	burst             *time.Duration // when the last request of the latest burst is through
}

// longestHold bounds how long a burst holds its first request back, so that
// arrivals faster than the front end cannot starve the engine for ever.
const longestHold = 2 * time.Second

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
	if f.burst == nil || now > *f.burst {
		start := now
		f.burst = &start
	}
	*f.burst += f.perRequest
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
	if at, ok := f.ready(); !ok || at > now {
		return nil
	}
	return f.queue.pop()
}

// A fifo is a queue that passes over cancelled requests.
type fifo struct {
	items []*seq
	head  int
}

func (q *fifo) push(s *seq) { q.items = append(q.items, s) }

// peek returns the first request that is not cancelled, or nil.
func (q *fifo) peek() *seq {
	for q.head < len(q.items) {
		if s := q.items[q.head]; !s.cancelled {
			return s
		}
		q.drop()
	}
	return nil
}

func (q *fifo) pop() *seq {
	s := q.peek()
	if s != nil {
		q.drop()
	}
	return s
}

func (q *fifo) drop() {
	q.items[q.head] = nil // for the garbage collector
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}
