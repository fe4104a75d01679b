package socket

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/transport/framing"
)

const (
	// holdBytes is how many bytes may wait in a connection before its reader is woken.
	holdBytes = 3 << 10
	// pauseBytes is the size of conn.data, read or unread, at which receiving pauses until
	// the reader read everything. A flood then stays in the kernel. The limit counts
	// read bytes, too, because a reader that is always slightly behind would never empty
	// the buffer.
	pauseBytes = 1 << 20
)

// A conn implements Conn on the socket of a net.TCPConn. It takes over the socket, because
// the runtime's poller would also wake for every segment.
type conn struct {
	fd            int
	slot          *slot
	key           // identifies slot
	local, remote net.Addr
	poller        *poller
	plainEvents   bool    // the connection carries streams of events without TLS, or decodes them
	wire          *wire   // nil without the wire clock
	decoder       Decoder // nil if the bytes need no decoding
	raw           uint64  // bytes received, if there is a decoder

	writing sync.Mutex // serializes writes

	mu         sync.Mutex
	changed    sync.Cond      // signals bytes to read, room to write, the end, or a deadline
	onReadable func(end bool) // called once when bytes are readable; may be nil
	buffer     *buffer        // nil if the connection is empty
	data       []byte
	segments   []segment
	read       int // offset in data
	seen       int // index in segments
	paused     bool
	wantsRoom  bool // a writer waits for room
	watched    uint32
	unused     bool // no write and no read yet, so the socket need not be watched
	closed     bool
	err        error // reason why receiving ended

	sendNumber uint32 // number of the last byte of Send
	sendLeft   int64  // time at which that byte left; 0 is unknown
	hidden     bool   // the poller does not watch the socket for reading

	retransmits, outOfOrder uint32 // counts at the last call of Counters

	held      bool
	released  bool // held long enough, so bytes are readable
	heldUntil int64
	sorted    uint32 // number of arrivals sorted to this connection

	readDeadline, writeDeadline time.Time
	deadlineTimer               *time.Timer
}

// poll takes over the socket of tcp. If poll fails, tcp may be closed.
func (p *poller) poll(tcp *net.TCPConn, plainEvents bool) (*conn, error) {
	c := &conn{local: tcp.LocalAddr(), remote: tcp.RemoteAddr(), poller: p, plainEvents: plainEvents, unused: true}
	c.changed.L = &c.mu
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dupErr error
	if err := raw.Control(func(fd uintptr) { c.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, os.NewSyscallError("dup", dupErr)
	}
	_ = tcp.Close() // the duplicate keeps the connection open
	if err := stampReceives(c.fd); err != nil {
		_ = unix.Close(c.fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := p.acquireSlot(c); err != nil {
		_ = unix.Close(c.fd)
		return nil, err
	}
	return c, nil
}

// watch registers the events the connection needs now. A socket that needs none is removed
// from epoll, because the kernel would still report its end.
func (c *conn) watch() error {
	var want uint32
	if c.err == nil && !c.paused && !c.hidden && !c.unused {
		want = unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if c.wantsRoom { // a peer that closed its sending side may still read
		want |= unix.EPOLLOUT
	}
	// Edge-triggered events need no second look at the socket, which halves the work.
	const once = 1 << 31 // EPOLLET, which is negative if an int has 32 bits
	op := unix.EPOLL_CTL_MOD
	switch {
	case want == c.watched || c.closed: // the file descriptor of a closed connection may be in use again
		return nil
	case c.watched == 0:
		op = unix.EPOLL_CTL_ADD
	case want == 0:
		op = unix.EPOLL_CTL_DEL
	}
	looked, looks := c.watched&unix.EPOLLIN != 0, want&unix.EPOLLIN != 0
	c.watched = want
	if looked && !looks {
		c.noteUnwatched()
	}
	err := unix.EpollCtl(c.poller.epoll, op, c.fd, &unix.EpollEvent{Events: want | once, Fd: c.number, Pad: int32(c.generation)})
	if looks && !looked {
		c.slot.rewatch(now())
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// noteUnwatched notes that the poller stops watching the socket. Bytes may have arrived
// since the poller last knew the socket to be empty. Before a request there are none.
func (c *conn) noteUnwatched() {
	empty := atomic.LoadInt64(&c.poller.empty)
	at := empty
	if c.hidden && !c.paused {
		at = now()
	}
	c.slot.unwatch(at, empty)
}

func (c *conn) unread() int { return len(c.data) - c.read }

// stampOf returns the stamp of bytes the kernel received at a time, or at polledAt if at
// is 0. The poller reads its clock once per batch, so polledAt may be before at. empty is
// a time at which the socket held none of the bytes.
func stampOf(at, polledAt, empty int64) Stamp {
	s := Stamp{At: polledAt}
	if at != 0 {
		s = Stamp{At: at, Lag: tacho.SaturatedNanos(time.Duration(max(0, polledAt-at))), Kernel: true}
	}
	s.Since = tacho.SaturatedNanos(time.Duration(max(1, s.At-empty)))
	return s
}

// take appends a segment for the reader.
func (c *conn) take(p []byte, s Stamp) (err error) {
	if c.buffer == nil {
		c.buffer = c.poller.bufferPool.take()
		c.data, c.segments = c.buffer.data, c.buffer.segments
	}
	c.grow(len(p))
	for len(p) > 0 && err == nil {
		before, used := len(c.data), len(p)
		if c.decoder == nil {
			c.data = append(c.data, p...)
		} else {
			c.data, used, err = c.decoder.Decode(c.data, p)
			c.raw += uint64(used)
		}
		p = p[used:]
		if len(c.data) > before {
			c.segments = append(c.segments, segment{len(c.data), c.raw, s})
		}
	}
	if len(c.data) == 0 {
		all := c.all() // the bytes were part of a record
		all.Release()
	}
	if len(c.data) > pauseBytes && !c.paused {
		c.paused = true
		_ = c.watch()                // as in handleEvents. It must precede slotPaused,
		c.slot.set(slotPaused, true) // because the thread watched the socket until then
	}
	return err
}

// eof returns the error of a stream that ended.
func (c *conn) eof() error {
	if c.decoder == nil {
		return io.EOF
	}
	_, _, err := c.decoder.Decode(nil, nil)
	return cmp.Or(err, io.EOF)
}

// Decode implements Conn.
func (c *conn) Decode(d Decoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decoder, c.plainEvents = d, true
	if c.wire != nil {
		c.raw = c.wire.read
	}
	if c.buffer == nil {
		return
	}
	p := c.all()
	defer p.Release()
	for start := p.read; p.seen < len(p.segments); p.seen++ {
		s := p.segments[p.seen]
		if err := c.take(p.data[start:s.end], s.Stamp); err != nil {
			c.end(err)
		}
		start = s.end
	}
}

// mayHold reports whether the reader can stay asleep: the bytes end with whole events, or
// they are a response head without a body.
func (c *conn) mayHold() bool {
	if !c.plainEvents || c.unread() > holdBytes {
		return false
	}
	p := c.data[c.read:]
	return framing.WholeEvents(p) || framing.BareHead(p)
}

// end ends receiving with err.
func (c *conn) end(err error) {
	c.err = err
	_ = c.watch() // as in handleEvents
	c.wake()
}

// wake wakes the reader and writers. The caller holds c.mu.
func (c *conn) wake() {
	if f := c.onReadable; f != nil {
		c.onReadable = nil
		f(c.endsResponse())
	}
	c.changed.Broadcast()
}

// endsResponse reports whether the bytes seem to end a response.
func (c *conn) endsResponse() bool {
	return c.plainEvents && framing.EndsResponse(c.data[c.read:])
}

// Tell implements Conn.
func (c *conn) Tell(f func(end bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.err != nil || c.readable() {
		f(c.endsResponse())
		return
	}
	c.onReadable = f
	c.startWatching()
}

// startWatching watches a connection that was unused so far.
func (c *conn) startWatching() {
	if !c.unused {
		return
	}
	c.unused = false
	if err := c.watch(); err != nil {
		c.end(err)
	}
}

// Receive implements Conn.
func (c *conn) Receive(p []byte) (n int, at Stamp, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 {
		return 0, Stamp{}, nil
	}
	if err := c.awaitReadable(); err != nil {
		return 0, Stamp{}, err
	}
	s := c.segments[c.seen]
	have := min(len(p), s.end-c.read)
	if c.wire != nil {
		c.mu.Unlock() // the poller must not wait for the tap, and it only appends
		have, s.Stamp = c.wire.take(have, s)
		c.mu.Lock()
	}
	n = copy(p, c.data[c.read:c.read+have])
	c.read += n
	if c.read == s.end {
		c.seen++
	}
	if c.unread() == 0 {
		all := c.all()
		all.Release()
	}
	return n, s.Stamp, nil
}

// awaitReadable waits until bytes are readable, or until there can be no more.
func (c *conn) awaitReadable() error {
	for !c.readable() {
		late := !c.readDeadline.IsZero() && !time.Now().Before(c.readDeadline)
		switch {
		case c.closed:
			return net.ErrClosed
		case late && c.unsorted():
			c.mu.Unlock() // bytes received before the deadline may still be in the ring
			c.poller.sort()
			c.mu.Lock()
			continue
		case late:
			return os.ErrDeadlineExceeded
		case c.err != nil:
			return c.err
		case c.unused:
			c.startWatching()
			continue
		}
		c.changed.Wait()
	}
	return nil
}

// unsorted reports whether the ring holds arrivals of this connection.
func (c *conn) unsorted() bool { return !c.closed && c.sorted != atomic.LoadUint32(&c.slot.received) }

// Await implements Conn.
func (c *conn) Await() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.awaitReadable() // the next read returns the error
	return c.unread()
}

// Waits implements Conn.
func (c *conn) Waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.err == nil && !c.readable()
}

// readable reports whether the reader may have the bytes. Once it may have some, it may
// have all. Bytes received in time are readable even after a deadline or after Close.
func (c *conn) readable() bool {
	if c.unread() == 0 {
		return false
	}
	c.released = c.released || c.closed || c.err != nil || !c.mayHold() || !c.readDeadline.IsZero() && !time.Now().Before(c.readDeadline)
	return c.released
}

// transmitStampRequest is the control message for sendmsg that requests a transmit
// timestamp.
var transmitStampRequest = func() []byte {
	b := make([]byte, unix.CmsgSpace(4))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SO_TIMESTAMPING
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], unix.SOF_TIMESTAMPING_TX_SOFTWARE)
	return b
}()

// Send implements Conn. The kernel reports the transmit timestamp through the error queue
// immediately. Between Prepare and Watch the poller does not watch the socket, so that
// this report does not wake the receive thread.
func (c *conn) Send(p []byte) int {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mayWrite() != nil {
		return 0
	}
	control := transmitStampRequest
	if c.wire != nil {
		control = nil
	}
	n, err := unix.SendmsgN(c.fd, p, control, nil, unix.MSG_NOSIGNAL)
	if err != nil {
		return 0
	}
	return n
}

// Prepare implements Conn. It stops watching the socket and notes the number of the last
// byte of Send.
func (c *conn) Prepare(end int64, relaxedEnd bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // the slot may be in use again
		return
	}
	c.slot.set(slotRelaxedEnd, relaxedEnd)
	if c.wire != nil {
		return
	}
	c.sendNumber, c.sendLeft, c.hidden = uint32(end)-1, 0, true
	_ = c.watch() // as in handleEvents
}

// Watch implements Conn. It watches the socket again.
func (c *conn) Watch() {
	if c.wire != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.hidden {
		return
	}
	c.hidden, c.unused = false, false
	r := stampReaders.Get().(*stampReader)
	c.readTransmitStamps(r)
	stampReaders.Put(r)
	if err := c.watch(); err != nil {
		c.end(err)
	}
}

var stampReaders = sync.Pool{New: func() any { return newStampReader() }}

// readTransmitStamps reads transmit timestamps from the error queue and reports whether
// there were any. If a segment was retransmitted, the first copy counts.
func (c *conn) readTransmitStamps(r *stampReader) (any bool) {
	for c.sendLeft == 0 || !any {
		at, number, ok := r.next(c.fd, unix.MSG_ERRQUEUE)
		if !ok {
			return any
		}
		any = true
		if number == c.sendNumber && c.sendLeft == 0 {
			c.sendLeft = at
			return true // more timestamps are rare, and would cause another event
		}
	}
	return any
}

// LeftBy implements Conn.
func (c *conn) LeftBy() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLeft
}

// Counters implements Conn.
func (c *conn) Counters() (retransmits, outOfOrder int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, 0
	}
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, 0
	}
	retransmits, outOfOrder = int(info.Total_retrans-c.retransmits), int(info.Rcv_ooopack-c.outOfOrder)
	c.retransmits, c.outOfOrder = info.Total_retrans, info.Rcv_ooopack
	return retransmits, outOfOrder
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, _, err := c.Receive(p)
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	done := 0
	for done < len(p) {
		if err := c.mayWrite(); err != nil {
			return done, err
		}
		n, err := unix.Write(c.fd, p[done:])
		switch err {
		case nil:
			done += n
		case unix.EINTR:
		case unix.EAGAIN:
			if err := c.awaitRoom(); err != nil {
				return done, err
			}
		default:
			return done, &net.OpError{Op: "write", Net: "tcp", Source: c.local, Addr: c.remote, Err: os.NewSyscallError("write", err)}
		}
	}
	return done, nil
}

func (c *conn) mayWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case !c.writeDeadline.IsZero() && !time.Now().Before(c.writeDeadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// awaitRoom waits until the kernel has room for more bytes.
func (c *conn) awaitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantsRoom = true
	if err := c.watch(); err != nil {
		return err
	}
	for c.wantsRoom && !c.closed && (c.writeDeadline.IsZero() || time.Now().Before(c.writeDeadline)) {
		c.changed.Wait()
	}
	return nil // mayWrite returns the reason
}

// Close implements net.Conn. It closes the socket only after the last use, because the
// file descriptor may be reused immediately.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.unsorted() {
		c.mu.Unlock()
		c.poller.sort()
		c.mu.Lock()
	}
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	if c.deadlineTimer != nil {
		c.deadlineTimer.Stop()
	}
	c.wake()
	c.mu.Unlock()
	if c.wire != nil {
		c.wire.conn.Release()
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.poller.releaseSlot(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	return os.NewSyscallError("close", unix.Close(c.fd))
}

// alive is Alive for a conn.
func (c *conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.err == nil && established(c.fd)
}

// Quiet implements Conn.
func (c *conn) Quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.err == nil && c.unread() == 0 && !c.unsorted() && established(c.fd)
}

// onSocket calls do with the file descriptor, unless c is closed.
func (c *conn) onSocket(do func(fd int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		do(c.fd)
	}
}

// SyscallConn implements syscall.Conn. Only Control is supported.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c}, nil }

type rawConn struct{ conn *conn }

// Control implements syscall.RawConn.
func (r rawConn) Control(f func(fd uintptr)) error {
	r.conn.onSocket(func(fd int) { f(uintptr(fd)) })
	return nil
}

// Read implements syscall.RawConn.
func (rawConn) Read(func(fd uintptr) bool) error { return errors.ErrUnsupported }

// Write implements syscall.RawConn.
func (rawConn) Write(func(fd uintptr) bool) error { return errors.ErrUnsupported }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// grow makes room for n more bytes.
func (c *conn) grow(n int) {
	need := len(c.data) + n
	if need <= max(cap(c.data), keptBuffer) {
		return
	}
	larger, _ := largeBuffers.Get().(*[]byte)
	if larger == nil || cap(*larger) < need {
		b := make([]byte, 0, 2*need)
		larger = &b
	}
	old := c.data
	c.data = append((*larger)[:0], old...)
	recycle(old)
}

// ReceiveAll implements Conn.
func (c *conn) ReceiveAll() (Pieces, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.awaitReadable(); err != nil {
		return Pieces{}, err
	}
	return c.all(), nil
}

// all hands over all bytes received. If the connection was paused, it resumes.
func (c *conn) all() Pieces {
	p := Pieces{buffer: c.buffer, data: c.data, segments: c.segments, read: c.read, seen: c.seen, bufferPool: &c.poller.bufferPool, wire: c.wire}
	c.buffer, c.data, c.segments, c.read, c.seen = nil, nil, nil, 0, 0
	c.released = false
	if c.paused && !c.closed { // the slot of a closed connection may be in use again
		c.paused = false
		c.slot.set(slotPaused, false)
		if err := c.watch(); err != nil {
			c.err = err
		}
	}
	return p
}
