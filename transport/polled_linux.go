package transport

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tacho"
)

const (
	// holdBytes is how much may lie in a connection before its reader is woken.
	holdBytes = 3 << 10
	// pauseBytes is how much may lie there, read or not, before nothing more is
	// received until the reader has caught up, so that a flood stays in the
	// kernel: a reader that is always a little behind would never empty it.
	pauseBytes = 1 << 20
)

// A polled is a TCP connection that is received from by a poller. It has taken
// the socket over from the net package, whose poller would wake for every
// segment, too.
type polled struct {
	fd            int
	seat          *seat
	key           // of it
	local, remote net.Addr
	poller        *poller
	mayBeHeld     bool  // it carries streams of events in the clear
	wire          *wire // nil where only the socket stamps

	writing sync.Mutex // one write at a time

	mu        sync.Mutex
	changed   sync.Cond        // there is something to read, room to write, an end or a deadline
	told      func(whole bool) // is called then, once; it may be nil
	box       *box             // nil while there is nothing
	data      []byte
	segments  []segment
	read      int // of data
	seen      int // of segments
	paused    bool
	wantsRoom bool // a writer waits
	watched   uint32
	fresh     bool // nobody has sent anything yet, nor waited for something: there is nothing to look for
	closed    bool
	err       error // what ended the receiving

	leaving uint32 // the number of a byte that is being sent,
	leftAt  int64  // and when it left; 0 is not known
	hidden  bool   // the poller does not look at it

	retransmits, outOfOrder uint32 // that the kernel had counted when it was last asked

	held      bool
	due       bool // it was held long enough
	heldUntil int64
	sorted    uint32 // how often it was given something

	readBy, writeBy time.Time
	alarm           *time.Timer
}

// A segment is what came in one receive.
type segment struct {
	end int // in polled.data
	stamp
}

// poll takes the socket of tcp over. Where it fails, tcp may be closed.
func (p *poller) poll(tcp *net.TCPConn, mayBeHeld bool) (*polled, error) {
	c := &polled{local: tcp.LocalAddr(), remote: tcp.RemoteAddr(), poller: p, mayBeHeld: mayBeHeld, fresh: true}
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
	_ = tcp.Close() // the connection lives on in its duplicate
	if err := stampReceives(c.fd); err != nil {
		_ = unix.Close(c.fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := p.sit(c); err != nil {
		_ = unix.Close(c.fd)
		return nil, err
	}
	return c, nil
}

// watch has the poller look for what is wanted now. A socket of which nothing
// is wanted is taken out: the kernel would go on to tell of its end.
func (c *polled) watch() error {
	var want uint32
	if c.err == nil && !c.paused && !c.hidden && !c.fresh {
		want = unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if c.wantsRoom { // even if the peer has nothing more to say, it may listen
		want |= unix.EPOLLOUT
	}
	// What was told once need not be looked at again: that is half of the work.
	const once = 1 << 31 // EPOLLET, which is negative where an int has 32 bits
	op := unix.EPOLL_CTL_MOD
	switch {
	case want == c.watched || c.closed: // then its number may be another's
		return nil
	case c.watched == 0:
		op = unix.EPOLL_CTL_ADD
	case want == 0:
		op = unix.EPOLL_CTL_DEL
	}
	looked, looks := c.watched&unix.EPOLLIN != 0, want&unix.EPOLLIN != 0
	c.watched = want
	if looked && !looks {
		c.leaveAlone()
	}
	err := unix.EpollCtl(c.poller.epoll, op, c.fd, &unix.EpollEvent{Events: want | once, Fd: c.number, Pad: int32(c.generation)})
	if looks && !looked {
		c.seat.comeBack(now())
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// leaveAlone notes that nobody looks at the socket any more. What has come since the
// poller last knew that it was empty may lie there; before a request nothing has.
func (c *polled) leaveAlone() {
	empty := atomic.LoadInt64(&c.poller.empty)
	at := empty
	if c.hidden && !c.paused {
		at = now()
	}
	c.seat.goAway(at, empty)
}

func (c *polled) unread() int { return len(c.data) - c.read }

// stampOf is the stamp of what the kernel got at a time, if it gave one. The poller
// looks at its clock once for all that is ready, which may be before the last of
// it came. None of it lay in the socket when that was last known to be empty.
func stampOf(at, polledAt, empty int64) stamp {
	s := stamp{at: polledAt}
	if at != 0 {
		s = stamp{at: at, lag: tacho.SaturatedNanos(time.Duration(max(0, polledAt-at))), kernel: true}
	}
	s.since = tacho.SaturatedNanos(time.Duration(max(1, s.at-empty)))
	return s
}

// take keeps a segment for the reader.
func (c *polled) take(p []byte, s stamp) {
	if c.box == nil {
		c.box = c.poller.boxes.take()
		c.data, c.segments = c.box.data, c.box.segments
	}
	c.room(len(p))
	c.data = append(c.data, p...)
	c.segments = append(c.segments, segment{len(c.data), s})
	if len(c.data) > pauseBytes && !c.paused {
		c.paused = true
		_ = c.watch()                // as above; and before the thread passes something over,
		c.seat.set(seatPaused, true) // for it has looked at it until then
	}
}

// mayHold says whether the reader need not be woken: what has come ends with whole
// events, or it is a head whose body is still to come.
func (c *polled) mayHold() bool {
	if !c.mayBeHeld || c.unread() > holdBytes {
		return false
	}
	p := c.data[c.read:]
	return wholeEvents(p) || bareHead(p)
}

// end notes why nothing more will come.
func (c *polled) end(err error) {
	c.err = err
	_ = c.watch() // as above
	c.wake()
}

// wake tells that something has changed. It is called with the lock held.
func (c *polled) wake() {
	if told := c.told; told != nil {
		c.told = nil
		told(c.whole())
	}
	c.changed.Broadcast()
}

// whole says whether what has come seems to end an answer.
func (c *polled) whole() bool {
	return c.mayBeHeld && bytes.HasSuffix(c.data[c.read:], []byte("\r\n"+lastChunk))
}

// tell has f called when a read will not wait, or sooner. f must not wait, nor
// use the connection.
func (c *polled) tell(f func(whole bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.err != nil || c.readable() {
		f(c.whole())
		return
	}
	c.told = f
	c.unfold()
}

// unfold has the poller look at a connection that was not used before.
func (c *polled) unfold() {
	if !c.fresh {
		return
	}
	c.fresh = false
	if err := c.watch(); err != nil {
		c.end(err)
	}
}

// hurry says whether something waits for the end of the answer that comes next.
func (c *polled) hurry(hurried bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed { // or the seat may be another's
		c.seat.set(seatUnhurried, !hurried)
	}
}

// receive returns the bytes of one segment, or the first of them, and when it
// arrived.
func (c *polled) receive(p []byte) (n int, at stamp, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 {
		return 0, stamp{}, nil
	}
	if err := c.ready(); err != nil {
		return 0, stamp{}, err
	}
	s := c.segments[c.seen]
	have := s.end - c.read
	if c.wire != nil {
		c.mu.Unlock() // the poller must not wait for this; it only ever adds
		have, s.stamp = c.wire.first(have, s.stamp)
		c.mu.Lock()
	}
	n = copy(p, c.data[c.read:c.read+have])
	c.read += n
	if c.wire != nil {
		c.wire.read += uint64(n)
	}
	if c.read == s.end {
		c.seen++
	}
	if c.unread() == 0 {
		c.done(c.all())
	}
	return n, s.stamp, nil
}

// ready waits until there is something to read, or never will be.
func (c *polled) ready() error {
	for !c.readable() {
		late := !c.readBy.IsZero() && !time.Now().Before(c.readBy)
		switch {
		case c.closed:
			return net.ErrClosed
		case late && c.lies():
			c.mu.Unlock() // what came in time was received, if not sorted
			c.poller.sort()
			c.mu.Lock()
			continue
		case late:
			return os.ErrDeadlineExceeded
		case c.err != nil:
			return c.err
		case c.fresh:
			c.unfold()
			continue
		}
		c.changed.Wait()
	}
	return nil
}

// lies says whether something was received that the connection has not been given.
func (c *polled) lies() bool { return !c.closed && c.sorted != atomic.LoadUint32(&c.seat.received) }

// await waits until a read will not. It says how many bytes there are then.
func (c *polled) await() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.ready() // the read will tell
	return c.unread()
}

// waits says whether a read would wait.
func (c *polled) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.err == nil && !c.readable()
}

// readable says whether the reader may have what there is: all of it, once it
// may have some. What came in time is had even by one who is late, or was stopped.
func (c *polled) readable() bool {
	if c.unread() == 0 {
		return false
	}
	c.due = c.due || c.closed || c.err != nil || !c.mayHold() || !c.readBy.IsZero() && !time.Now().Before(c.readBy)
	return c.due
}

// stampThis asks the kernel when a write left: a control message for sendmsg.
var stampThis = func() []byte {
	b := make([]byte, unix.CmsgSpace(4))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SO_TIMESTAMPING
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], unix.SOF_TIMESTAMPING_TX_SOFTWARE)
	return b
}()

// send writes what goes without waiting, and has the kernel say when that left. It
// says so as if it were an error, and at once: so that the poller is not woken for
// it the socket is hidden from it before, until look.
func (c *polled) send(p []byte) int {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mayWrite() != nil {
		return 0
	}
	control := stampThis
	if c.wire != nil {
		control = nil
	}
	n, err := unix.SendmsgN(c.fd, p, control, nil, unix.MSG_NOSIGNAL)
	if err != nil {
		return 0
	}
	return n
}

// hide takes the socket from the poller, and notes the byte to look out for: the
// last that send is to write.
func (c *polled) hide(number uint32) {
	if c.wire != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving, c.leftAt, c.hidden = number, 0, true
	_ = c.watch() // a change of what is watched does not fail
}

// look ends what hide began: it gives the socket back to the poller.
func (c *polled) look() {
	if c.wire != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.hidden {
		return
	}
	c.hidden, c.fresh = false, false
	r := receivers.Get().(*receiver)
	c.takeLeaving(r)
	receivers.Put(r)
	if err := c.watch(); err != nil {
		c.end(err)
	}
}

var receivers = sync.Pool{New: func() any { return newReceiver() }}

// takeLeaving takes what the kernel says of segments that left. Of one that was sent
// again the first copy counts.
func (c *polled) takeLeaving(r *receiver) (any bool) {
	for c.leftAt == 0 || !any {
		at, number, ok := r.next(c.fd, unix.MSG_ERRQUEUE)
		if !ok {
			return any
		}
		any = true
		if number == c.leaving && c.leftAt == 0 {
			c.leftAt = at
			return true // there is hardly more, and if there is we will be told
		}
	}
	return any
}

// leftBy is when that byte left; 0 is not known.
func (c *polled) leftBy() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leftAt
}

// troubles are what the network did to the connection since they were last asked
// for.
func (c *polled) troubles() (retransmits, outOfOrder int) {
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
func (c *polled) Read(p []byte) (int, error) {
	n, _, err := c.receive(p)
	return n, err
}

// Write implements net.Conn.
func (c *polled) Write(p []byte) (int, error) {
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

func (c *polled) mayWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case !c.writeBy.IsZero() && !time.Now().Before(c.writeBy):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// awaitRoom waits until the kernel has room for more.
func (c *polled) awaitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantsRoom = true
	if err := c.watch(); err != nil {
		return err
	}
	for c.wantsRoom && !c.closed && (c.writeBy.IsZero() || time.Now().Before(c.writeBy)) {
		c.changed.Wait()
	}
	return nil // mayWrite tells which it was
}

// Close implements net.Conn. The socket is closed when nobody uses it: its
// number may belong to another at once.
func (c *polled) Close() error {
	c.mu.Lock()
	if c.lies() {
		c.mu.Unlock()
		c.poller.sort()
		c.mu.Lock()
	}
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	if c.alarm != nil {
		c.alarm.Stop()
	}
	c.wake()
	c.mu.Unlock()
	if c.wire != nil {
		c.wire.conn.Release()
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.poller.rise(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	return os.NewSyscallError("close", unix.Close(c.fd))
}

// alive says whether the peer still holds the connection open.
func (c *polled) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.err == nil && established(c.fd)
}

// quiet says whether the peer still holds the connection open, and has said
// nothing.
func (c *polled) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.err == nil && c.unread() == 0 && !c.lies() && established(c.fd)
}

// onSocket does something with the socket if it is not closed.
func (c *polled) onSocket(do func(fd int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		do(c.fd)
	}
}

// LocalAddr implements net.Conn.
func (c *polled) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *polled) RemoteAddr() net.Addr { return c.remote }
