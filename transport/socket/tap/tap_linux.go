package tap

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// drainTime is how often the ring is drained. Calls that need a time drain the ring
	// themselves, so drainTime only keeps the ring from filling up.
	drainTime = 10 * time.Millisecond
	// maxUntracked limits the number of untracked connections. Our connections are
	// untracked only briefly, but other programs may use the server, too.
	maxUntracked = 4096
	// untrackedPoints is how many points a connection may have before it is tracked.
	untrackedPoints = 64
)

// retryDelays are the waits for a segment that should be in the ring: another CPU may be
// about to add it.
var retryDelays = []time.Duration{0, 50 * time.Microsecond, time.Millisecond}

// Tap records the connections to some ports. A Tap is safe for concurrent use.
type Tap struct {
	done chan struct{}

	mu        sync.Mutex
	ring      *ring // nil if closed
	closing   bool
	tracked   int
	conns     map[tuple]*Conn
	untracked []*Conn // in the order of their SYNs; some are tracked by now
	stats     Stats
}

// Conn is a tracked connection.
type Conn struct {
	In, Out Stream
	tap     *Tap
	tuple   tuple
	tracked bool
}

// Stream is one direction of a connection. It records when the stream had how many bytes,
// counted from the first byte after the handshake.
type Stream struct {
	tap  *Tap
	flow flow
}

// Open opens a tap. Only connections made after Open can be tracked.
func Open(c Config) (*Tap, error) {
	r, err := openRing(c)
	if err != nil {
		return nil, err
	}
	t := &Tap{ring: r, done: make(chan struct{}), conns: map[tuple]*Conn{}}
	go t.run()
	return t, nil
}

func (t *Tap) run() {
	tick := time.NewTicker(drainTime)
	defer tick.Stop()
	for {
		select {
		case <-t.done:
			return
		case <-tick.C:
			t.mu.Lock()
			t.drain()
			t.mu.Unlock()
		}
	}
}

// drain handles all packets in the ring. The caller holds t.mu.
func (t *Tap) drain() {
	if t.ring != nil {
		t.ring.drain(t.take)
	}
}

func (t *Tap) take(packet []byte, length int, out bool, at int64) {
	s, ok := parse(packet, length, out)
	if !ok {
		return
	}
	t.stats.Segments++
	c := t.conns[s.tuple]
	if s.flags&synFlag != 0 {
		c = t.begin(c, s)
	}
	if c == nil {
		return
	}
	f := &c.In.flow
	if s.out {
		f = &c.Out.flow
	}
	if !f.started || s.bytes == 0 {
		return
	}
	what := f.add(s.seq, s.bytes, at)
	switch {
	case !c.tracked:
	case what == repeated:
		t.stats.Repeated++
	case what == outOfOrder:
		t.stats.Reordered++
	}
	if !c.tracked && len(f.points) > untrackedPoints {
		delete(t.conns, s.tuple) // the connection belongs to another program
	}
}

// begin handles a SYN. A SYN of ours adds a connection, unless it is retransmitted. A SYN
// of the server starts the server's stream. If a port is reused, the connection starts
// anew.
func (t *Tap) begin(c *Conn, s segment) *Conn {
	if s.out && (c == nil || c.Out.flow.first != s.seq+1) {
		c = &Conn{tap: t, tuple: s.tuple}
		c.In.tap, c.Out.tap = t, t
		c.Out.flow.start(s.seq)
		t.conns[s.tuple] = c
		t.untracked = append(t.untracked, c)
		if len(t.untracked) > maxUntracked {
			t.dropUntracked()
		}
	}
	if !s.out && c != nil && !c.In.flow.started && s.flags&ackFlag != 0 {
		c.In.flow.start(s.seq)
	}
	return c
}

// dropUntracked drops the older half of the untracked connections.
func (t *Tap) dropUntracked() {
	kept := t.untracked[:0]
	for i, c := range t.untracked {
		switch {
		case c.tracked || t.conns[c.tuple] != c:
		case i < maxUntracked/2:
			delete(t.conns, c.tuple)
		default:
			kept = append(kept, c)
		}
	}
	clear(t.untracked[len(kept):])
	t.untracked = kept
}

// Track tracks a connection until Release. It returns nil if the tap did not see the
// handshake: the connection is older than the tap, goes to a port that is not in
// Config.Ports, or has other addresses at the device than at the socket.
func (t *Tap) Track(local, remote netip.AddrPort) *Conn {
	key := newTuple(local, remote)
	var found *Conn
	t.await(func() bool {
		t.drain() // the map may contain an older connection with the same ports
		c := t.conns[key]
		if c == nil || c.tracked || !c.In.flow.started || t.closing {
			return false
		}
		c.tracked = true
		t.tracked++
		found = c
		return true
	})
	return found
}

// await drains the ring until satisfied returns true, or until the segment must have been
// missed.
func (t *Tap) await(satisfied func() bool) {
	try := func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		if satisfied() {
			return true
		}
		t.drain()
		return satisfied()
	}
	for i := 0; !try() && i < len(retryDelays); i++ {
		time.Sleep(retryDelays[i])
	}
}

// Release ends the tracking. Times recorded before Release stay available.
func (c *Conn) Release() {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if !c.tracked {
		return
	}
	c.tap.drain()
	c.tracked = false
	c.tap.tracked--
	if c.tap.conns[c.tuple] == c {
		delete(c.tap.conns, c.tuple)
	}
	c.tap.closeIfUnused()
}

// At returns the time at which the stream had n bytes (wall-clock nanoseconds), and the
// number of bytes it had then. It does not wait for bytes already read from the socket or
// known to be sent. ok is false if the tap missed that moment. Then end is the end of the
// missed range, or 0 if nothing is known beyond n.
func (s *Stream) At(n uint64) (end uint64, at int64, ok bool) {
	s.tap.await(func() bool {
		end, at = s.flow.at(n)
		return end != 0
	})
	return end, at, at != 0
}

// Skip moves the stream to n bytes after At failed. The tap missed segments and drops
// everything that depends on them.
func (s *Stream) Skip(n uint64) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.flow.skip(n)
}

// Forget drops the times of the first n bytes.
func (s *Stream) Forget(n uint64) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.flow.forget(n)
}

// Stats returns the counts since Open.
func (t *Tap) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	if t.ring != nil {
		t.stats.Lost = t.ring.countLost()
	}
	return t.stats
}

// Close closes the ring after the last tracked connection is released.
func (t *Tap) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
	t.closeIfUnused()
}

// Closed reports whether the ring is closed.
func (t *Tap) Closed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ring == nil
}

func (t *Tap) closeIfUnused() {
	if !t.closing || t.tracked > 0 || t.ring == nil {
		return
	}
	t.stats.Lost = t.ring.countLost()
	t.ring.close()
	t.ring = nil
	close(t.done)
}
