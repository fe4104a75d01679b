package transport

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// A seat is what the thread that receives knows of a connection. The seats of a
// poller stay where they are, and are used again: an event of a connection that is
// closed may still be on its way.
type seat struct {
	sitter
	state uint32 // the generation of the sitter, and the bits below: always atomically
}

// A sitter is the connection that has a seat.
type sitter struct {
	away, back int64  // the poller did not look from then until then: atomically
	counted           // of the thread, while it is busy with the connection,
	several    bool   // as is whether what came last was several events;
	bytes      uint64 // how much was received in all;
	segments   uint32 // how many had come when all of them were received (see alone),
	receives   uint32 // and how many receives there were since
	flags      uint32 // atomically
	received   uint32 // how often something was: atomically
	fd         int32
}

const (
	seatTaken = 1 << iota // there is a connection,
	seatBusy              // and the thread is about to receive from it
	seatNext              // a generation
)

const (
	seatMayBeHeld = 1 << iota // as in polled
	seatUnhurried
	seatPaused
)

// A key tells who sits where.
type key struct {
	number     int32
	generation uint32
}

// seatsTogether are the seats that are made at a time, of so many blocks at most.
const (
	seatsTogether = 256
	blocksMost    = 4096
)

type block [seatsTogether]seat

// seatOf is the seat that has a number.
//
//go:nosplit
//go:norace
func (t *thread) seatOf(number int32) *seat {
	return &t.blocks[uint32(number)/seatsTogether%blocksMost][uint32(number)%seatsTogether]
}

// enter is called by the thread before it uses the socket, which is not closed then
// until leave. It says whether it still is the one that was meant.
//
//go:nosplit
//go:norace
func (s *seat) enter(generation uint32) bool {
	return cas32(&s.state, generation|seatTaken, generation|seatTaken|seatBusy)
}

//go:nosplit
//go:norace
func (s *seat) leave(generation uint32) { store32(&s.state, generation|seatTaken) }

// vacate waits until the thread does not use the socket, and never will again.
func (s *seat) vacate(generation uint32) {
	for try := 0; !atomic.CompareAndSwapUint32(&s.state, generation|seatTaken, generation+seatNext); try++ {
		if runtime.Gosched(); try > 10 { // the thread has lost its core
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// goAway notes that nobody looks at the socket any more, from a time on; or from an
// earlier one, where nobody has looked since that was last so.
func (s *seat) goAway(at, looked int64) {
	if atomic.LoadInt64(&s.back) < looked {
		atomic.StoreInt64(&s.away, at)
	}
	atomic.StoreInt64(&s.back, math.MaxInt64)
}

// comeBack ends what goAway began, once the socket is looked at again.
func (s *seat) comeBack(at int64) { atomic.StoreInt64(&s.back, at) }

// set sets a flag, or clears it.
func (s *seat) set(flag uint32, on bool) {
	if on {
		atomic.OrUint32(&s.flags, flag)
	} else {
		atomic.AndUint32(&s.flags, ^flag)
	}
}

var errSeats = errors.New("too many connections")

// sit gives a connection a seat.
func (p *poller) sit(c *polled) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := int32(len(p.conns))
	if last := len(p.vacant) - 1; last >= 0 {
		number, p.vacant = p.vacant[last], p.vacant[:last]
	} else {
		if number == blocksMost*seatsTogether {
			return errSeats
		}
		p.conns = append(p.conns, nil)
	}
	if b := &p.blocks[number/seatsTogether]; *b == nil {
		*b = new(block) // the thread does not look there before it is told of the number
	}
	s := p.seatOf(number)
	c.seat, c.key = s, key{number, atomic.LoadUint32(&s.state)}
	s.sitter = sitter{fd: int32(c.fd), away: now(), back: math.MaxInt64}
	s.set(seatMayBeHeld, c.mayBeHeld)
	p.conns[number] = c
	atomic.StoreUint32(&s.state, c.generation|seatTaken)
	return nil
}

// rise takes the seat of a connection away.
func (p *poller) rise(c *polled) {
	c.seat.vacate(c.generation)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c.number] = nil
	p.vacant = append(p.vacant, c.number)
	p.endIfDone()
}

// who is the connection that has a key; nil if it is closed.
func (p *poller) who(k key) *polled {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conns[k.number]
	if c == nil || c.generation != k.generation {
		return nil
	}
	return c
}

// load is how many connections it has.
func (p *poller) load() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) - len(p.vacant)
}
