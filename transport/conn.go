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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/transport/socket"
)

// now is the wall clock. The kernel's timestamps are CLOCK_REALTIME, and only times of the
// same clock can be subtracted.
func now() int64 { return time.Now().UnixNano() }

const (
	// waitLeast is the shortest read that counts as having waited for bytes. A read that
	// finds bytes returns within microseconds.
	waitLeast = time.Millisecond
	// lateLeast, lateMost, latePart and silentPart limit how long bytes may wait in a
	// connection if the client keeps up. They are 25 % above the polling intervals of the
	// receive thread: 2 ms, up to 4 ms and a tenth of the gaps under load, and a hundredth
	// of a silence.
	lateLeast  = 2500 * time.Microsecond
	lateMost   = 5 * time.Millisecond
	latePart   = 8
	silentPart = 80
)

// readStamp returns the stamp of bytes from a read that began at began and returns now.
func readStamp(began int64) socket.Stamp {
	s := socket.Stamp{At: now()}
	if took := time.Duration(s.At - began); took >= waitLeast {
		s.Waited, s.Since = true, tacho.SaturatedNanos(took)
	}
	return s
}

// late reports whether bytes waited in the connection for longer than they do if the
// client keeps up. They arrived at most since ago, and gap after the bytes before.
func late(since, gap time.Duration) bool {
	return since > max(lateLeast, min(lateMost, gap/latePart), gap/silentPart)
}

// A conn records the times of its traffic in the span of its owner. It hides ReadFrom and
// WriteTo of the underlying connection, because net/http would use them to bypass Read and
// Write.
type conn struct {
	net.Conn
	kernel    socket.Conn // the same connection with kernel timestamps; nil if unavailable
	tls       *tlsCodec   // nil without TLS, or if a tls.Conn above this connection does it
	h2c       bool        // HTTP/2 without TLS
	spare     bool        // dialled in advance
	owner     atomic.Pointer[span]
	lateAt    atomic.Int64 // time of the last late read, by the kernel's timestamps
	keepAlive connKeepAlive
}

// newConn wraps nc. If clock is nil, or nc cannot have kernel timestamps, times are read
// times, and exchanges report the read clock. plainEvents reports whether nc carries
// streams of events without TLS.
func newConn(nc net.Conn, clock *socket.Clock, plainEvents bool) (*conn, error) {
	if clock == nil {
		return &conn{Conn: nc}, nil
	}
	kernel, err := clock.Take(nc, plainEvents) // nil if nc is not TCP
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	if kernel == nil {
		return &conn{Conn: nc}, nil
	}
	return &conn{Conn: kernel, kernel: kernel}, nil
}

// own makes s the owner of the connection. net/http may reuse a connection before the
// previous request reads its send times, so the previous span keeps a copy.
func (c *conn) own(s *span) {
	s.before = c.keepAlive.wrote.Load()
	if old := c.owner.Swap(s); old != nil && c.kernel != nil {
		old.keepSendTimes(c.kernel.LeftBy(), s.before)
	}
}

// Read implements net.Conn. It is one receive.
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
	n, at, err := c.kernel.Receive(p)
	if n > 0 {
		if read := now(); late(time.Duration(read-at.At), 0) {
			c.lateAt.Store(read)
		}
		c.received(at)
	}
	c.closedBy(err)
	return n, err
}

// closedBy notes an error caused by the peer. If the peer closed the connection, the bytes
// it received are known; after a reset they are not.
func (c *conn) closedBy(err error) {
	if err == nil {
		return
	}
	var errno syscall.Errno
	switch taken, closed := socket.Delivered(c.Conn); {
	case errors.Is(err, io.EOF) || closed:
		c.keepAlive.end(taken)
	case !errors.As(err, &errno) || !slices.Contains(resetErrnos, errno):
		return
	}
	s := c.owner.Load()
	c.keepAlive.cut(s == nil || s.silent())
}

func (c *conn) received(at socket.Stamp) {
	if s := c.owner.Load(); s != nil {
		s.received(at)
	}
}

// Write implements net.Conn. It records the time before and after.
func (c *conn) Write(p []byte) (n int, err error) {
	sealed, err := c.seal(p)
	if err != nil {
		return 0, err
	}
	if n, err = c.writeSealed(sealed); err == nil {
		n = len(p)
	}
	return min(n, len(p)), err
}

// seal returns the bytes to write for p: p itself, or its TLS records. They must be written
// before the next call.
func (c *conn) seal(p []byte) ([]byte, error) {
	if c.tls == nil {
		return p, nil
	}
	return c.tls.seal(p)
}

// writeSealed is Write for bytes that need no encryption.
func (c *conn) writeSealed(p []byte) (n int, err error) {
	s := c.owner.Load()
	if s == nil {
		c.keepAlive.wrote.Add(int64(len(p)))
		return c.Conn.Write(p)
	}
	if c.kernel != nil && s.sendStart() == 0 {
		c.prepare(len(p), s, false)
		n = c.begin(p, s)
		runtime.Gosched() // other goroutines may be about to send, and go first
		if c.kernel.Watch(); n == len(p) {
			return n, nil
		}
	}
	p = p[n:]
	s.writing()
	c.keepAlive.wrote.Add(int64(len(p)))
	rest, err := c.Conn.Write(p)
	c.keepAlive.wrote.Add(int64(rest - len(p)))
	s.written(err)
	c.closedBy(err)
	return n + rest, err
}

// prepare prepares the first write of a request, of n bytes.
func (c *conn) prepare(n int, s *span, relaxedEnd bool) {
	c.kernel.Prepare(s.before+int64(n), relaxedEnd)
}

// begin is the first write of a request, between prepare and kernel.Watch. It writes what
// it can without waiting. The next write returns its error, if any.
func (c *conn) begin(p []byte, s *span) int {
	s.writing()
	c.keepAlive.wrote.Add(int64(len(p)))
	n := c.kernel.Send(p)
	c.keepAlive.wrote.Add(int64(n - len(p)))
	s.written(nil)
	return n
}

// NetConn returns the underlying connection.
func (c *conn) NetConn() net.Conn { return c.Conn }

// connUnder returns the conn below layers of TLS.
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

// A span records the times of one exchange on its connection. Goroutines of net/http use
// the connection too, and the next request may own it while this one still ends. So the
// times are here, guarded by a mutex, and not in conn.
type span struct {
	shared bool  // HTTP/2: the connection carries other requests too, and the hooks of net/http record the times
	under  *conn // the connection, if it is ours
	before int64 // bytes sent on the connection before this request

	mu       sync.Mutex
	handedOn bool      // the next request owns the connection
	left     int64     // kernel.LeftBy at the handover
	after    int64     // keepAlive.wrote at the handover
	returned sync.Cond // signals the end of a write
	sent     int64     // time before the first write
	sentBy   int64     // time after the first write
	wrote    int64     // time after the last completed write
	busy     bool      // a write is in progress
	broken   bool      // a write failed
	whole    bool      // net/http wrote the whole request into its buffer
	head     int64     // time of the first receive
	last     int64     // time of the last receive
	lag      int32     // nanoseconds from last until the client received the bytes
	since    int32     // nanoseconds before last when the bytes had not arrived
	late     bool      // the bytes may have waited in the connection
	wire     bool      // last is a time of the wire clock
	receives uint32
	read     bool // some receive is without a kernel timestamp
	wired    bool // some receive carries a wire timestamp
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
	if s.sentBy == 0 {
		s.sentBy = t
	}
	s.broken = s.broken || err != nil
	s.returned.Signal()
	s.mu.Unlock()
}

// received records a receive. Receives with the same kernel timestamp were merged and
// share a number. A segment that overtook another is usable only after the other one, so
// times never decrease.
func (s *span) received(r socket.Stamp) Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.At = max(r.At, s.last)
	if !r.Kernel {
		s.read = true
	}
	if !r.Kernel || r.At != s.last {
		before := max(s.sent, s.last)
		s.receives++
		s.since = after(before, r)
		s.late = !r.Waited && late(time.Duration(s.since), time.Duration(r.At-before))
	}
	if s.head == 0 {
		s.head = r.At
	}
	s.last, s.lag, s.wire = r.At, r.Lag, r.Wire
	s.wired = s.wired || r.Wire
	return s.lastRead()
}

// after returns the nanoseconds before r.At in which the bytes may have arrived: not
// before the previous receive, and not before the request.
func after(before int64, r socket.Stamp) int32 {
	since := tacho.SaturatedNanos(time.Duration(max(0, r.At-before)))
	if r.Since != 0 {
		since = min(since, r.Since)
	}
	return since
}

// keepSendTimes copies the send times before the next request owns the connection: the
// time at which the first write left, and the bytes sent so far.
func (s *span) keepSendTimes(left, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.handedOn {
		s.handedOn, s.left, s.after = true, left, after
	}
}

// sendTimes returns the time at which the first write of this request left, or 0 if
// unknown, and the number of bytes sent on c including the last write.
func (s *span) sendTimes(c *conn) (left, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handedOn {
		return s.left, s.after
	}
	return c.kernel.LeftBy(), c.keepAlive.wrote.Load()
}

// silent reports whether no byte of the response arrived.
func (s *span) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head == 0
}

// sendStart returns the time before the first write.
func (s *span) sendStart() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// latest returns the last receive.
func (s *span) latest() Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastRead()
}

func (s *span) lastRead() Read {
	return Read{At: s.last, Lag: s.lag, Since: s.since, Late: s.late, Recv: s.receives, Wire: s.wire}
}

// awaitWrites waits until no write is in progress. A response can arrive before its write
// returns. If it arrives before the request is written, net/http closes the connection,
// which ends the write.
func (s *span) awaitWrites() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy && !s.shared {
		s.returned.Wait()
	}
}

// fill copies the times into x.
func (s *span) fill(x *Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.Sent, x.SentBy, x.Head = s.sent, s.sentBy, s.head
	x.Wrote = 0
	// net/http reports a request as written when it is in a buffer. The write that empties
	// the buffer must have returned, too.
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
