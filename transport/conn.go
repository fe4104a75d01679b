package transport

import (
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tacho"
)

// now is the wall clock: the kernel stamps CLOCK_REALTIME, and only times of
// the same clock can be subtracted.
func now() int64 { return time.Now().UnixNano() }

// A stamp says when something was received.
type stamp struct {
	at     int64
	lag    int32 // nanoseconds from then until we had it, saturated
	since  int32 // nanoseconds before it when there was nothing to receive, saturated; 0: not known
	kernel bool  // at is the kernel's time, and not that of the read
	wire   bool  // at is the time of this very segment, seen at the network device
	waited bool  // the reader waited for it: nothing had come when the read began
}

const (
	// waitLeast is how long a read takes at least that waited for its bytes. One that
	// finds bytes returns within microseconds.
	waitLeast = time.Millisecond
	// lateLeast, lateMost, latePart and silentPart say for how long bytes may lie in a
	// connection while the client is well. They are a quarter more than the periods in
	// which the receive thread looks at its connections: 2 ms, up to 4 ms and a tenth of
	// the gaps if much comes, and a hundredth of a silence.
	lateLeast  = 2500 * time.Microsecond
	lateMost   = 5 * time.Millisecond
	latePart   = 8
	silentPart = 80
)

// readStamp is the stamp of bytes whose read began at a time and returns now.
func readStamp(began int64) stamp {
	s := stamp{at: now()}
	if took := time.Duration(s.at - began); took >= waitLeast {
		s.waited, s.since = true, tacho.SaturatedNanos(took)
	}
	return s
}

// late says whether bytes that may have come since so long before lay in the connection
// for longer than they do if the client is well. gap is the time since the bytes before.
func late(since, gap time.Duration) bool {
	return since > max(lateLeast, min(lateMost, gap/latePart), gap/silentPart)
}

// A conn is a connection that stamps its traffic into the span that has it.
// It deliberately hides the ReadFrom and WriteTo of the connection beneath:
// net/http would use them to go past Read and Write.
type conn struct {
	net.Conn
	kernel *polled // the same connection, where the kernel gives times
	h2c    bool    // HTTP/2 without TLS
	spare  bool    // it was made before somebody had a use for it
	owner  atomic.Pointer[span]
	lateAt atomic.Int64 // when bytes were last read that had lain there for long, by the kernel's times
	lease  lease
}

// newConn wraps nc. clock is nil if times are those of the read; a connection
// that cannot have the kernel's falls back to them, and its exchanges say so.
// mayBeHeld says that it carries streams of events in the clear.
func newConn(nc net.Conn, clock *kernelClock, mayBeHeld bool) (*conn, error) {
	if clock == nil {
		return &conn{Conn: nc}, nil
	}
	kernel, err := clock.take(nc, mayBeHeld)
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	if kernel == nil {
		return &conn{Conn: nc}, nil
	}
	return &conn{Conn: kernel, kernel: kernel}, nil
}

// own makes s the owner of the connection. net/http may hand a connection to the next
// request before the one before has taken its times of sending: that one keeps them.
func (c *conn) own(s *span) {
	s.before = c.lease.wrote.Load()
	if old := c.owner.Swap(s); old != nil && c.kernel != nil {
		old.keepLeaving(c.kernel.leftBy(), s.before)
	}
}

// Read is one receive.
func (c *conn) Read(p []byte) (int, error) {
	if c.kernel == nil {
		began := now()
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.received(readStamp(began))
		}
		c.closedBy(err)
		return n, err
	}
	n, at, err := c.kernel.receive(p)
	if n > 0 {
		if read := now(); late(time.Duration(read-at.at), 0) {
			c.lateAt.Store(read)
		}
		c.received(at)
	}
	c.closedBy(err)
	return n, err
}

// closedBy notes how a connection ended if it was the peer that ended it. What
// had reached it is known if it closed the connection, and not if it was reset.
func (c *conn) closedBy(err error) {
	if err == nil {
		return
	}
	var errno syscall.Errno
	switch taken, closed := delivered(c.Conn); {
	case errors.Is(err, io.EOF) || closed:
		c.lease.end(taken)
	case !errors.As(err, &errno) || !slices.Contains(resetErrnos, errno):
		return
	}
	s := c.owner.Load()
	c.lease.cut(s == nil || s.silent())
}

func (c *conn) received(at stamp) {
	if s := c.owner.Load(); s != nil {
		s.received(at)
	}
}

// Write stamps before and after.
func (c *conn) Write(p []byte) (n int, err error) {
	s := c.owner.Load()
	if s == nil {
		c.lease.wrote.Add(int64(len(p)))
		return c.Conn.Write(p)
	}
	if c.kernel != nil && s.begun() == 0 {
		c.hide(len(p), s)
		n = c.begin(p, s)
		runtime.Gosched() // others may be about to send: they come first
		if c.kernel.look(); n == len(p) {
			return n, nil
		}
	}
	p = p[n:]
	s.writing()
	c.lease.wrote.Add(int64(len(p)))
	rest, err := c.Conn.Write(p)
	c.lease.wrote.Add(int64(rest - len(p)))
	s.written(err)
	c.closedBy(err)
	return n + rest, err
}

// hide makes ready for the first write of a request, of so many bytes.
func (c *conn) hide(n int, s *span) { c.kernel.hide(uint32(s.before) + uint32(n) - 1) }

// begin is the first write of a request, after hide and before the kernel looks
// again. It writes what goes at once; the kernel will say when that left.
// What went wrong the next write will tell.
func (c *conn) begin(p []byte, s *span) int {
	s.writing()
	c.lease.wrote.Add(int64(len(p)))
	n := c.kernel.send(p)
	c.lease.wrote.Add(int64(n - len(p)))
	s.written(nil)
	return n
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
	shared bool  // HTTP/2: the connection carries others too, and net/http's hooks stamp instead
	under  *conn // that connection, if it is ours
	before int64 // bytes that were sent on the connection before

	mu       sync.Mutex
	handedOn bool      // another request has the connection,
	left     int64     // and before that these were its kernel.leftBy
	after    int64     // and its lease.wrote
	returned sync.Cond // a write has
	sent     int64     // before the first write
	sentBy   int64     // after it
	wrote    int64     // after the last write that returned
	busy     bool      // a write is under way
	broken   bool      // a write failed
	whole    bool      // net/http has handed over the whole request
	head     int64     // the first receive
	last     int64     // the last receive
	lag      int32     // nanoseconds from then until we had it
	since    int32     // nanoseconds before it when none of it had come
	late     bool      // it may have lain in the connection for long
	wire     bool      // it was seen at the network device
	receives uint32
	read     bool // the kernel gave no time for some receive
	wired    bool // some receive was seen at the network device
}

func newSpan(shared bool) *span {
	s := &span{shared: shared}
	s.returned.L = &s.mu
	return s
}

// writing notes that a write begins.
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
	if s.sentBy == 0 {
		s.sentBy = t
	}
	s.broken = s.broken || err != nil
	s.returned.Signal()
	s.mu.Unlock()
}

// received notes a receive. Receives that the kernel stamped alike came out of
// one merged segment and get one number. A segment that overtook another was of
// no use before that one came, so time does not go back.
func (s *span) received(r stamp) Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.at = max(r.at, s.last)
	if !r.kernel {
		s.read = true
	}
	if !r.kernel || r.at != s.last {
		before := max(s.sent, s.last)
		s.receives++
		s.since = r.after(before)
		s.late = !r.waited && late(time.Duration(s.since), time.Duration(r.at-before))
	}
	if s.head == 0 {
		s.head = r.at
	}
	s.last, s.lag, s.wire = r.at, r.lag, r.wire
	s.wired = s.wired || r.wire
	return s.lastRead()
}

// after is since when it may have come, in nanoseconds before its time: not
// before the one before it, nor before it was asked for.
func (r stamp) after(before int64) int32 {
	since := tacho.SaturatedNanos(time.Duration(max(0, r.at-before)))
	if r.since != 0 {
		since = min(since, r.since)
	}
	return since
}

// keepLeaving notes that another request gets the connection, and what was known of
// the bytes that this one sent: when the first write left, and how many bytes the
// connection had sent with them.
func (s *span) keepLeaving(left, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.handedOn {
		s.handedOn, s.left, s.after = true, left, after
	}
}

// leaving returns when the first write of this request left, 0 if unknown, and how many
// bytes c had sent with the last write.
func (s *span) leaving(c *conn) (left, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handedOn {
		return s.left, s.after
	}
	return c.kernel.leftBy(), c.lease.wrote.Load()
}

// silent says that nothing of the answer has come.
func (s *span) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head == 0
}

// begun is when the request began to be sent.
func (s *span) begun() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// latest describes the last receive.
func (s *span) latest() Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastRead()
}

func (s *span) lastRead() Read {
	return Read{At: s.last, Lag: s.lag, Since: s.since, Late: s.late, Recv: s.receives, Wire: s.wire}
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
	x.Sent, x.SentBy, x.Head = s.sent, s.sentBy, s.head
	x.Wrote = 0
	// net/http calls a request whole when it lies in its buffer: the write
	// that empties the buffer must have returned, too.
	if s.whole && !s.busy && !s.broken {
		x.Wrote = s.wrote
	}
	switch {
	case s.read || s.shared || s.receives == 0:
		x.Clock = tacho.ReadClock
	case s.wired:
		x.Clock = tacho.WireClock
	default:
		x.Clock = tacho.KernelClock
	}
}
