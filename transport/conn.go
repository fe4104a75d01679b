package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tacho"
)

// now is the wall clock: the kernel stamps CLOCK_REALTIME, and only times of
// the same clock can be subtracted.
func now() int64 { return time.Now().UnixNano() }

// A conn is a connection that stamps its traffic into the span that has it.
// It deliberately hides the ReadFrom and WriteTo of the connection beneath:
// net/http would use them to go past Read and Write.
type conn struct {
	net.Conn
	kernel *kernelReceiver // nil where the kernel gives no times
	h2c    bool            // HTTP/2 without TLS
	owner  atomic.Pointer[span]
}

// newConn wraps nc. want is the clock asked for; a connection that cannot have
// the kernel's falls back to the read clock, and its exchanges say so.
func newConn(nc net.Conn, want tacho.Clock) *conn {
	c := &conn{Conn: nc}
	if want != tacho.ReadClock {
		c.kernel = newKernelReceiver(nc)
	}
	return c
}

// Read is one receive.
func (c *conn) Read(p []byte) (int, error) {
	if c.kernel == nil {
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.received(0)
		}
		return n, err
	}
	n, at, err := c.kernel.receive(p)
	if n > 0 {
		c.received(at)
	}
	return n, err
}

func (c *conn) received(kernelTime int64) {
	if s := c.owner.Load(); s != nil {
		s.received(kernelTime)
	}
}

// Write stamps before and after.
func (c *conn) Write(p []byte) (int, error) {
	s := c.owner.Load()
	if s == nil {
		return c.Conn.Write(p)
	}
	s.writing()
	n, err := c.Conn.Write(p)
	s.written(err)
	return n, err
}

// NetConn returns the connection beneath.
func (c *conn) NetConn() net.Conn { return c.Conn }

// connUnder finds the stamping connection beneath layers of TLS.
func connUnder(nc net.Conn) *conn {
	for {
		switch c := nc.(type) {
		case *conn:
			return c
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// A span is what one exchange saw of its connection. The connection is used by
// net/http's reading and writing goroutines and by ours, and is handed on to
// the next request while we may still look at the end of this one: so stamps
// live here, behind a lock, and not in the connection.
type span struct {
	shared bool // HTTP/2: the connection carries others too, and net/http's hooks stamp instead

	mu       sync.Mutex
	returned sync.Cond // a write has
	sent     int64     // before the first write
	wrote    int64     // after the last write that returned
	busy     bool      // a write is under way
	broken   bool      // a write failed
	whole    bool      // net/http has handed over the whole request
	head     int64     // the first receive
	last     int64     // the last receive
	receives uint32
	read     bool // the kernel gave no time for some receive
}

func newSpan(shared bool) *span {
	s := &span{shared: shared}
	s.returned.L = &s.mu
	return s
}

func (s *span) writing() {
	t := now()
	s.mu.Lock()
	if s.sent == 0 {
		s.sent = t
	}
	s.busy = true
	s.mu.Unlock()
}

func (s *span) written(err error) {
	t := now()
	s.mu.Lock()
	s.wrote, s.busy = t, false
	s.broken = s.broken || err != nil
	s.returned.Signal()
	s.mu.Unlock()
}

// received notes a receive; kernelTime 0 is none. Receives that the kernel
// stamped alike came out of one merged segment and get one number. A segment
// that overtook another was of no use before that one came, so time does not
// go back.
func (s *span) received(kernelTime int64) {
	at := kernelTime
	if at == 0 {
		at = now()
	}
	s.mu.Lock()
	at = max(at, s.last)
	if kernelTime == 0 {
		s.read = true
	}
	if kernelTime == 0 || at != s.last {
		s.receives++
	}
	if s.head == 0 {
		s.head = at
	}
	s.last = at
	s.mu.Unlock()
}

// latest is the time and number of the last receive.
func (s *span) latest() (at int64, receive uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.receives
}

// settle waits until no write is under way. An answer can overtake the return
// of the write that it answers; and where it came before the request was
// written, net/http closes the connection, which ends the write.
func (s *span) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy && !s.shared {
		s.returned.Wait()
	}
}

// fill copies the stamps into x.
func (s *span) fill(x *Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.Sent, x.Head = s.sent, s.head
	x.Wrote = 0
	// net/http calls a request whole when it lies in its buffer: the write
	// that empties the buffer must have returned, too.
	if s.whole && !s.busy && !s.broken {
		x.Wrote = s.wrote
	}
	x.Clock = tacho.KernelClock
	if s.read || s.shared || s.receives == 0 {
		x.Clock = tacho.ReadClock
	}
}
