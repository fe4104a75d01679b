package socket

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// A slot is the receive thread's view of a connection. Slots never move and are reused,
// because an event of a closed connection may still be queued.
type slot struct {
	slotState
	state uint32 // generation and the bits slotTaken and slotBusy; accessed atomically
}

// slotState describes the connection in a slot.
type slotState struct {
	unwatchedFrom, unwatchedUntil int64  // the poller did not watch the socket in this interval; accessed atomically
	counted                              // this field to receives: used by the receive thread while the slot is busy
	several                       bool   // the last receive contained several events
	bytes                         uint64 // bytes received in total
	segments                      uint32 // segments at the last time all bytes had been received, see singleSegment
	receives                      uint32 // receives since then
	flags                         uint32 // accessed atomically
	received                      uint32 // number of receives; accessed atomically
	fd                            int32
}

const (
	slotTaken = 1 << iota // the slot has a connection
	slotBusy              // the receive thread is about to receive from the connection
	slotNext              // the lowest bit of the generation
)

const (
	slotPlainEvents = 1 << iota // as conn.plainEvents
	slotRelaxedEnd
	slotPaused
)

// A key identifies a connection by slot number and generation.
type key struct {
	number     int32
	generation uint32
}

// Slots are allocated in blocks of slotsPerBlock, and there are at most maxBlocks blocks.
const (
	slotsPerBlock = 256
	maxBlocks     = 4096
)

type block [slotsPerBlock]slot

// slotOf returns the slot with a number.
//
//go:nosplit
//go:norace
func (t *thread) slotOf(number int32) *slot {
	return &t.blocks[uint32(number)/slotsPerBlock%maxBlocks][uint32(number)%slotsPerBlock]
}

// acquire marks the slot as busy, so that its socket stays open until release. It reports
// whether the slot still has a connection of this generation.
//
//go:nosplit
//go:norace
func (s *slot) acquire(generation uint32) bool {
	return cas32(&s.state, generation|slotTaken, generation|slotTaken|slotBusy)
}

//go:nosplit
//go:norace
func (s *slot) release(generation uint32) { store32(&s.state, generation|slotTaken) }

// retire waits until the receive thread does not use the slot and ends the generation.
func (s *slot) retire(generation uint32) {
	for try := 0; !atomic.CompareAndSwapUint32(&s.state, generation|slotTaken, generation+slotNext); try++ {
		if runtime.Gosched(); try > 10 { // the receive thread is not running
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// unwatch notes that the poller stopped watching the socket at a time. If the poller has
// not polled since the last rewatch, the earlier start of the interval stays.
func (s *slot) unwatch(at, looked int64) {
	if atomic.LoadInt64(&s.unwatchedUntil) < looked {
		atomic.StoreInt64(&s.unwatchedFrom, at)
	}
	atomic.StoreInt64(&s.unwatchedUntil, math.MaxInt64)
}

// rewatch notes that the poller watches the socket again.
func (s *slot) rewatch(at int64) { atomic.StoreInt64(&s.unwatchedUntil, at) }

func (s *slot) set(flag uint32, on bool) {
	if on {
		atomic.OrUint32(&s.flags, flag)
	} else {
		atomic.AndUint32(&s.flags, ^flag)
	}
}

var errSlots = errors.New("too many connections")

// acquireSlot gives c a slot.
func (p *poller) acquireSlot(c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := int32(len(p.conns))
	if last := len(p.freeSlots) - 1; last >= 0 {
		number, p.freeSlots = p.freeSlots[last], p.freeSlots[:last]
	} else {
		if number == maxBlocks*slotsPerBlock {
			return errSlots
		}
		p.conns = append(p.conns, nil)
	}
	if b := &p.blocks[number/slotsPerBlock]; *b == nil {
		*b = new(block) // the receive thread uses the block only after an event with the number
	}
	s := p.slotOf(number)
	c.slot, c.key = s, key{number, atomic.LoadUint32(&s.state)}
	s.slotState = slotState{fd: int32(c.fd), unwatchedFrom: now(), unwatchedUntil: math.MaxInt64}
	s.set(slotPlainEvents, c.plainEvents)
	p.conns[number] = c
	atomic.StoreUint32(&s.state, c.generation|slotTaken)
	return nil
}

// releaseSlot frees the slot of c.
func (p *poller) releaseSlot(c *conn) {
	c.slot.retire(c.generation)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c.number] = nil
	p.freeSlots = append(p.freeSlots, c.number)
	p.endIfDone()
}

// connOf returns the connection of a key, or nil if the connection is closed.
func (p *poller) connOf(k key) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conns[k.number]
	if c == nil || c.generation != k.generation {
		return nil
	}
	return c
}

// load returns the number of connections.
func (p *poller) load() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) - len(p.freeSlots)
}
