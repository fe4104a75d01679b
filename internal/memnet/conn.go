package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is the number of unread bytes per direction above which a write waits for the reader, like the socket
// buffers of both ends.
const window = 256 << 10

// A conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote net.Addr
	read, write   deadline

	mu     sync.Mutex
	closed bool
	linger bool // SetLinger(0) was called: Close resets the connection
}

func newPair(client, server net.Addr, delay time.Duration) (*conn, *conn) {
	up, down := newStream(delay), newStream(delay)
	return newConn(down, up, client, server), newConn(up, down, server, client)
}

func newConn(in, out *stream, local, remote net.Addr) *conn {
	return &conn{in: in, out: out, local: local, remote: remote}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b, c.read.passed())
	return n, c.wrap("read", err)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b, c.write.passed())
	return n, c.wrap("write", err)
}

// wrap makes err look like the error of a socket.
func (c *conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // streams return io.EOF unwrapped, and so must Read
		return err
	}
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // streams return errno unwrapped
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close implements net.Conn. The peer reads the bytes already sent and then io.EOF. If this end left bytes unread,
// or SetLinger(0) was called, Close resets the connection.
func (c *conn) Close() error {
	c.mu.Lock()
	again, linger := c.closed, c.linger
	c.closed = true
	c.mu.Unlock()
	if again {
		return net.ErrClosed
	}
	c.read.set(time.Time{}) // stops the timers
	c.write.set(time.Time{})
	unread := c.in.unread()
	c.in.set(&c.in.abandoned) // before the peer notices: this end must not read the peer's reaction
	if unread || linger {
		c.reset()
	}
	c.out.set(&c.out.finished)
	return nil
}

// CloseWrite closes the sending direction. The other direction stays open.
func (c *conn) CloseWrite() error {
	c.out.set(&c.out.finished)
	return nil
}

// SetLinger makes Close reset the connection if seconds is 0, like the method of net.TCPConn.
func (c *conn) SetLinger(seconds int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger = seconds == 0
	return nil
}

// reset fails both directions for the peer.
func (c *conn) reset() {
	c.in.set(&c.in.broken)
	c.out.set(&c.out.broken)
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return nil
}

// A stream is one direction of a connection.
type stream struct {
	delay time.Duration

	mu        sync.Mutex
	segments  []segment
	bytes     int           // in segments
	finished  bool          // the writer closed the stream
	abandoned bool          // the reader closed the stream
	broken    bool          // reset
	changed   chan struct{} // closed at the next change
}

// A segment holds the bytes of one write. The reader sees them from time at on.
type segment struct {
	at time.Time
	b  []byte
}

func newStream(delay time.Duration) *stream {
	return &stream{delay: delay, changed: make(chan struct{})}
}

// change wakes all waiting readers and writers. The caller holds s.mu.
func (s *stream) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// set sets one of the stream's flags.
func (s *stream) set(flag *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*flag = true
	s.change()
}

func (s *stream) unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes > 0
}

func (s *stream) read(b []byte, passed <-chan struct{}) (int, error) {
	for {
		n, wait, changed, err := s.take(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if err := await(changed, wait, passed); err != nil {
			return 0, err
		}
	}
}

// take reads from one segment only, so the size of a read does not depend on how late the reader calls. If no
// segment has arrived, wait is the time until the first segment arrives (0 if there is none), and the next change
// closes changed.
func (s *stream) take(b []byte) (n int, wait time.Duration, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch empty := len(s.segments) == 0; {
	case s.abandoned:
		return 0, 0, nil, net.ErrClosed
	case empty && s.broken:
		return 0, 0, nil, syscall.ECONNRESET
	case empty && s.finished:
		return 0, 0, nil, io.EOF
	case empty:
		return 0, 0, s.changed, nil
	}
	if wait = time.Until(s.segments[0].at); wait > 0 {
		return 0, wait, s.changed, nil
	}
	first := &s.segments[0]
	n = copy(b, first.b)
	if first.b = first.b[n:]; len(first.b) == 0 {
		s.segments = s.segments[1:]
	}
	s.bytes -= n
	s.change()
	return n, 0, nil, nil
}

func (s *stream) write(b []byte, passed <-chan struct{}) (n int, err error) {
	for {
		moved, changed, err := s.put(b[n:])
		n += moved
		if n == len(b) || err != nil {
			return n, err
		}
		if err := await(changed, 0, passed); err != nil {
			return n, err
		}
	}
}

// put appends as many bytes of b as the window allows.
func (s *stream) put(b []byte) (n int, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.finished:
		return 0, nil, net.ErrClosed
	case s.broken:
		return 0, nil, syscall.ECONNRESET
	case s.abandoned:
		return 0, nil, syscall.EPIPE
	}
	n = min(len(b), window-s.bytes)
	if n > 0 {
		s.segments = append(s.segments, segment{time.Now().Add(s.delay), append([]byte(nil), b[:n]...)})
		s.bytes += n
		s.change()
	}
	return n, s.changed, nil
}

// await waits for a change, for the deadline, or for wait to elapse if wait is not 0.
func await(changed <-chan struct{}, wait time.Duration, passed <-chan struct{}) error {
	var arrived <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		arrived = timer.C
	}
	select {
	case <-passed:
		return os.ErrDeadlineExceeded
	default:
	}
	select {
	case <-changed:
	case <-arrived:
	case <-passed:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// A deadline closes a channel when the deadline passes.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	gone  chan struct{} // closed when the deadline passes; created on first use
}

// passed returns a channel closed when the deadline passes.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone == nil {
		d.gone = make(chan struct{})
	}
	return d.gone
}

// set moves the deadline. The zero time removes the deadline.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.gone == nil || isClosed(d.gone) {
		d.gone = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	left, gone := time.Until(t), d.gone
	if left <= 0 {
		close(gone)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer { // otherwise the deadline was moved meanwhile
			close(gone)
			d.timer = nil
		}
	})
	d.timer = timer
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
