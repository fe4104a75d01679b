package tap

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// drainTime is how often the ring is emptied. Nobody waits for that: who
	// asks for a time that is not there yet looks into the ring first. It only
	// keeps the ring from filling.
	drainTime = 10 * time.Millisecond
	// maxStrangers bounds the connections that were seen to begin and are not
	// tracked: ours are for a moment only, and others have business with the
	// server, too.
	maxStrangers = 4096
	// strangerPoints is how much may come for a connection before it is tracked.
	strangerPoints = 64
)

// lateTries are how long to wait for a segment that should be in the ring and
// is not: another processor may just be putting it there.
var lateTries = []time.Duration{0, 50 * time.Microsecond, time.Millisecond}

// A Tap sees the connections to some ports. It is safe for concurrent use.
type Tap struct {
	done chan struct{}

	mu        sync.Mutex
	ring      *ring // nil when it is closed
	closing   bool
	tracked   int
	conns     map[tuple]*Conn
	strangers []*Conn // in the order in which they were seen, some of them tracked by now
	stats     Stats
}

// A Conn is a tracked connection.
type Conn struct {
	In, Out Stream
	tap     *Tap
	tuple   tuple
	tracked bool
}

// A Stream is one direction of a connection. It says when the stream had how
// many bytes, counted from the first after the handshake.
type Stream struct {
	tap  *Tap
	flow flow
}

// Open begins to tap. Connections that begin later can be tracked.
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

// drain takes what is in the ring. It wants the lock.
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
	case what == early:
		t.stats.Reordered++
	}
	if !c.tracked && len(f.points) > strangerPoints {
		delete(t.conns, s.tuple) // it belongs to somebody else
	}
}

// begin takes a SYN: ours makes a connection, unless it is sent again; the
// server's starts its stream. A port that is used again begins anew.
func (t *Tap) begin(c *Conn, s segment) *Conn {
	if s.out && (c == nil || c.Out.flow.first != s.seq+1) {
		c = &Conn{tap: t, tuple: s.tuple}
		c.In.tap, c.Out.tap = t, t
		c.Out.flow.start(s.seq)
		t.conns[s.tuple] = c
		t.strangers = append(t.strangers, c)
		if len(t.strangers) > maxStrangers {
			t.forgetStrangers()
		}
	}
	if !s.out && c != nil && !c.In.flow.started && s.flags&ackFlag != 0 {
		c.In.flow.start(s.seq)
	}
	return c
}

// forgetStrangers drops the older half of those that are not ours.
func (t *Tap) forgetStrangers() {
	kept := t.strangers[:0]
	for i, c := range t.strangers {
		switch {
		case c.tracked || t.conns[c.tuple] != c:
		case i < maxStrangers/2:
			delete(t.conns, c.tuple)
		default:
			kept = append(kept, c)
		}
	}
	clear(t.strangers[len(kept):])
	t.strangers = kept
}

// Track follows a connection from its beginning until Release. It returns nil
// if its handshake was not seen: it began before the tap, goes to a port that was
// not named, or has other addresses on the wire than on the socket.
func (t *Tap) Track(local, remote netip.AddrPort) *Conn {
	key := newTuple(local, remote)
	var found *Conn
	t.await(func() bool {
		t.drain() // an older connection by the same ports may still stand there
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

// await looks into the ring until what is there satisfies, or long enough to be
// sure that it never will.
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
	for i := 0; !try() && i < len(lateTries); i++ {
		time.Sleep(lateTries[i])
	}
}

// Release ends the tracking. What came before can still be asked for.
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

// At says when the stream had n bytes (wall-clock nanoseconds), and how many it
// had then. A caller that has read them from the socket, or knows that they were
// sent, learns it at once. It is not ok if the tap missed that moment; end then
// says how far what was missed goes, or is 0 if nothing is known from there on.
func (s *Stream) At(n uint64) (end uint64, at int64, ok bool) {
	s.tap.await(func() bool {
		end, at = s.flow.at(n)
		return end != 0
	})
	return end, at, at != 0
}

// Skip is told that the stream has n bytes, after At did not know of them: the
// tap has missed something, and gives up all that depends on it.
func (s *Stream) Skip(n uint64) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.flow.skip(n)
}

// Forget is told that nobody will ask for the first n bytes any more.
func (s *Stream) Forget(n uint64) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.flow.forget(n)
}

// Stats says what was seen so far.
func (t *Tap) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	if t.ring != nil {
		t.stats.Lost = t.ring.countLost()
	}
	return t.stats
}

// Close lets go of the ring when the last tracked connection is released.
func (t *Tap) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
	t.closeIfUnused()
}

// Closed says whether it has let go.
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
