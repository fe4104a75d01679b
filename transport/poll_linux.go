package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tacho/internal/haste"
)

const (
	// holdTime is how long the events of a stream may lie in a connection
	// before its reader is woken. They have their times already, and a reader
	// that is woken for several at once costs a fraction.
	holdTime = time.Second
	// endTime is how long the end of an answer may lie there if nothing waits for
	// it, until there are endsMost: to wake one reader costs as much as to wake
	// five, and hundreds at once would be in the way of what is to be sent.
	endTime  = 10 * time.Millisecond
	endsMost = 8
	// batch is how many connections are served at a time.
	batch = 512
	// silencePart is the part of a silence after which the poller looks whether
	// anything has come, though it was not woken: what comes merged then came
	// within so much of the gap before it. It does so after lookTime at the
	// soonest, for looking has its price, and after lookMost at the latest; and
	// after gatherTime for mergeTime after something came merged.
	silencePart = 50
	lookTime    = 5 * time.Millisecond
	lookMost    = 500 * time.Millisecond
	mergeTime   = 2 * time.Second
)

// pollers share the connections of a client. One thread receives from hundreds
// without being late; beyond that there are more threads, but never so many that
// nothing is left for the rest of the work.
type pollers struct {
	most int

	mu  sync.Mutex
	all []*poller
}

// perPoller is how many connections a poller has before there is a further one.
const perPoller = 512

// least is the poller that has the fewest connections, or a new one.
func (ps *pollers) least() (*poller, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var least *poller
	var fewest int
	for _, p := range ps.all {
		if n := p.load(); least == nil || n < fewest {
			least, fewest = p, n
		}
	}
	if least != nil && (fewest < perPoller || len(ps.all) >= ps.most) {
		return least, nil
	}
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	ps.all = append(ps.all, p)
	go p.run()
	return p, nil
}

// close ends the threads when their last connections are closed.
func (ps *pollers) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.mu.Lock()
		p.closing = true
		p.mu.Unlock()
	}
}

// A poller receives for some connections, in one thread of its own: it waits
// for the kernel to tell which have something, and receives once from each. That
// is one system call for a segment, where the runtime's poller needs two and a
// goroutine's turn; and as it does nothing else it is seldom late, so that
// segments seldom merge before they are stamped.
type poller struct {
	epoll int
	quiet bool // it may wait without a word to Go's runtime

	mu      sync.Mutex
	conns   byNumber
	closing bool

	boxes boxes

	// The rest is of the thread alone.
	held   []*polled // in the order in which their time is up
	ends   []*polled // those with the end of an answer that nothing waits for,
	endsBy int64     // and when their time is up
	now    int64     // when it last looked at the clock
	empty  int64     // when nothing lay in any socket but what it received after
	heard  int64     // when it last received
	merged int64     // when that was last more than one event
	told   bool      // something left: that need not be heard at once
	gathering
}

// byNumber are connections by the numbers of their sockets, which are small.
type byNumber struct {
	of    []*polled
	count int
}

func (b *byNumber) put(fd int, c *polled) {
	if fd >= len(b.of) {
		b.of = append(b.of, make([]*polled, max(fd+1-len(b.of), len(b.of)))...)
	}
	b.of[fd] = c
	b.count++
}

func (b *byNumber) drop(fd int) {
	b.of[fd] = nil
	b.count--
}

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poller{epoll: epoll, quiet: runtime.GOMAXPROCS(0) > runtime.NumCPU()}, nil
}

// load is how many connections it has.
func (p *poller) load() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns.count
}

func (p *poller) run() {
	runtime.LockOSThread() // for good: the thread ends with its goroutine, and its priority with it
	haste.Ask()            // when hundreds of streams end at once our own threads compete with it, too
	events := make([]unix.EpollEvent, batch)
	ready := make([]*polled, 0, len(events))
	r := newReceiver()
	for {
		asked := now()
		n, err := p.wait(events)
		if err != nil { // a signal
			n = 0
		}
		p.mu.Lock()
		if p.closing && p.conns.count == 0 {
			p.mu.Unlock()
			_ = unix.Close(p.epoll) // nothing was written to it
			return
		}
		ready = ready[:0]
		for i := range n {
			ready = append(ready, p.conns.of[events[i].Fd])
		}
		p.mu.Unlock()
		p.now = now()
		for i, c := range ready {
			if c != nil { // or it was closed meanwhile
				p.serve(c, r, events[i].Events)
			}
		}
		if n < batch && err == nil { // it was told of all that had something
			p.empty = asked
		}
		p.release()
		p.gather(p.pause(n, now()))
	}
}

// wait waits for connections that have something. Go's runtime is not told of a short
// wait. If it were, it would wake another thread to take this one's turn away, and that
// costs more than to receive. Where the runtime must stop this thread, it sends a
// signal, which ends the wait. The thread keeps its turn meanwhile, so a process needs
// more turns than cores for this (engine.Tune).
func (p *poller) wait(events []unix.EpollEvent) (int, error) {
	most := p.waitMillis()
	if !p.quiet || time.Duration(most)*time.Millisecond > lookTime {
		return unix.EpollWait(p.epoll, events, most)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(most), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// waitMillis is how long to wait at most: until a held connection's time is up,
// or for a part of the silence.
// It is rounded up: rounded down, the last millisecond would be spent on asking
// again and again.
func (p *poller) waitMillis() int {
	least := lookTime
	if p.now-p.merged < int64(mergeTime) {
		least = gatherTime
	}
	left := min(int64(lookMost), max(int64(least), (p.now-p.heard)/silencePart))
	if len(p.held) > 0 {
		left = min(left, p.held[0].heldUntil-p.now)
	}
	if len(p.ends) > 0 {
		left = min(left, p.endsBy-p.now)
	}
	return int((max(0, left) + int64(time.Millisecond) - 1) / int64(time.Millisecond))
}

// pause is how long segments may gather after a batch of n: if so many come
// that it pays, to the end of the period that began with the batch, and not at
// all if more is waiting than a batch can hold. Where some come merged the period
// is short.
func (p *poller) pause(n int, now int64) time.Duration {
	p.judge(p.now)
	period := p.period
	if p.now-p.merged < int64(mergeTime) {
		period = min(period, gatherTime)
	}
	if p.told {
		period = max(period, gatherTime)
	}
	p.told = false
	if n == batch {
		return 0
	}
	return min(period, max(0, period-time.Duration(now-p.now))) // the wall clock may be set back
}

// gather sleeps for a moment, as quietly as wait does. A signal may cut it short.
func (p *poller) gather(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	switch {
	case d <= 0:
	case p.quiet:
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	default:
		_ = unix.Nanosleep(&ts, nil)
	}
}

func (p *poller) serve(c *polled, r *receiver, events uint32) {
	c.mu.Lock()
	if !c.closed {
		p.serveOpen(c, r, events)
	}
	c.mu.Unlock()
}

// serveOpen receives what a connection has. The kernel tells once of what came,
// and not again of what was left there.
func (p *poller) serveOpen(c *polled, r *receiver, events uint32) {
	if events&unix.EPOLLERR != 0 && c.takeLeaving(r) {
		events &^= unix.EPOLLERR // it was no error
		p.told = true
	}
	if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		c.wantsRoom = false // or a write will tell why there is none
		_ = c.watch()       // it is watched already, and a change of that does not fail
		c.changed.Broadcast()
	}
	if events&^unix.EPOLLOUT == 0 {
		return
	}
	ends := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	for c.err == nil && !c.paused {
		n, err := p.receive(c, r)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			c.end(err)
		case n < len(r.buf) && !ends: // that was all, but perhaps for the end
			return
		}
	}
}

// receive takes what one receive brings.
func (p *poller) receive(c *polled, r *receiver) (int, error) {
	n, at, err := r.receive(c.fd)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, err
	case err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.local, Addr: c.remote, Err: os.NewSyscallError("recvmsg", err)}
	case n == 0:
		return 0, io.EOF
	}
	p.heard = p.now
	p.count(&c.counted, p.now)
	if c.follows(r.buf[:n]) {
		p.merged = p.now
	}
	empty := p.empty
	if c.back > empty { // it has not looked since
		empty = min(empty, c.away)
	}
	if c.behind != 0 {
		empty = c.behind
	}
	c.take(r.buf[:n], stampOf(at, p.now, empty))
	c.behind = 0
	if n == len(r.buf) || c.paused { // more may lie there
		c.behind = empty
	}
	p.wakeLater(c)
	return n, nil
}

// wakeLater wakes the reader of a connection, or does so later.
func (p *poller) wakeLater(c *polled) {
	hold := c.mayHold()
	if c.mayBeHeld && (!hold || c.bareHead()) { // of others nobody knows where an answer ends
		p.ended++
		if !c.unhurried {
			p.awaited++
		}
	}
	switch {
	case hold && !c.held:
		c.held, c.heldUntil = true, p.now+int64(holdTime)
		p.held = append(p.held, c)
	case hold:
	case c.mayBeHeld && c.unhurried && c.unread() <= holdBytes:
		if len(p.ends) == 0 {
			p.endsBy = p.now + int64(endTime)
		}
		p.ends = append(p.ends, c)
	default:
		c.wake()
	}
}

// lastChunk ends an answer.
const lastChunk = "0\r\n\r\n"

// follows says whether what has come is behind several events that came merged. What
// ends an answer comes merged as a rule, and nothing follows.
func (c *polled) follows(p []byte) bool {
	behind := c.several && !bytes.HasPrefix(p, []byte(lastChunk)) && !bytes.HasPrefix(p, []byte("HTTP/"))
	c.several = several(p)
	return behind
}

// several says whether p seems to hold more than one event: more than one TLS
// record, or a whole chunk that ends a line and then another. The head of an
// answer is none, nor is its end.
func several(p []byte) bool {
	const header, firstType, lastType = 5, 20, 24
	if len(p) > header && p[0] >= firstType && p[0] <= lastType {
		return header+int(binary.BigEndian.Uint16(p[3:])) < len(p)
	}
	if bytes.HasPrefix(p, []byte("HTTP/")) {
		return false
	}
	_, more, _ := bytes.Cut(p, []byte("\n\r\n"))
	return len(more) > len(lastChunk)
}

// release wakes the readers of connections that were held long enough.
func (p *poller) release() {
	if len(p.ends) > 0 && (p.endsBy <= p.now || len(p.ends) >= endsMost) {
		for _, c := range p.ends {
			c.mu.Lock()
			c.wake()
			c.mu.Unlock()
		}
		clear(p.ends)
		p.ends = p.ends[:0]
	}
	for len(p.held) > 0 && p.held[0].heldUntil <= p.now {
		c := p.held[0]
		p.held[0] = nil
		p.held = p.held[1:]
		c.mu.Lock()
		c.held = false
		if c.unread() > 0 {
			c.wake()
			c.due = true
		}
		c.mu.Unlock()
	}
}
