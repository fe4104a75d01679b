package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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
	endTime  = 20 * time.Millisecond
	endsMost = 16
	// batch is how many connections are served at a time.
	batch = 512
	// silencePart is the part of a silence after which the thread looks whether
	// anything has come, though it was not woken: what comes merged then came
	// within so much of the gap before it. It does so after lookTime at the
	// soonest, for looking has its price, and after lookMost at the latest; and
	// after closeTime for mergeTime after something came merged.
	silencePart = 100
	lookTime    = 2 * time.Millisecond
	closeTime   = 250 * time.Microsecond
	lookMost    = 500 * time.Millisecond
	mergeTime   = 2 * time.Second
)

// pollers share the connections of all clients. One thread receives from hundreds
// without being late; beyond that there are more threads, but never so many that
// nothing is left for the rest of the work, however many servers there are.
type pollers struct {
	most int

	mu  sync.Mutex
	all []*poller

	users int // clocks; under the lock of common
}

// common are the pollers of the clocks that there are; nil where there is none.
var common struct {
	mu  sync.Mutex
	all *pollers
}

// join is the pollers for another clock.
func join() *pollers {
	common.mu.Lock()
	defer common.mu.Unlock()
	if common.all == nil {
		common.all = &pollers{most: max(1, runtime.NumCPU()/2)}
	}
	common.all.users++
	return common.all
}

// leave ends what join began. After the last clock the threads end, when their last
// connections are closed.
func (ps *pollers) leave() {
	common.mu.Lock()
	defer common.mu.Unlock()
	if ps.users--; ps.users > 0 {
		return
	}
	if common.all == ps {
		common.all = nil
	}
	ps.close()
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
	p.start()
	return p, nil
}

// close ends the threads when their last connections are closed.
func (ps *pollers) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.mu.Lock()
		p.closing = true
		p.endIfDone()
		p.mu.Unlock()
	}
}

// A poller receives for some connections, in one thread of its own, and has what
// came sorted to them by a goroutine.
type poller struct {
	thread
	bell *os.File // as thread.bell

	mu      sync.Mutex
	conns   []*polled // by their seats
	vacant  []int32   // seats
	closing bool

	boxes boxes

	sorting  sync.Mutex
	receiver *receiver // of those who sort, as are
	held     []*polled // in the order in which their time is up
}

func newPoller() (*poller, error) {
	ordinary, err := wantsOrdinary()
	if err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd", err), unix.Close(epoll))
	}
	p := &poller{bell: os.NewFile(uintptr(bell), "bell"), receiver: newReceiver()}
	p.init(epoll, bell)
	p.ordinary = ordinary || !hasFree
	return p, nil
}

func (p *poller) start() {
	go p.run()
	go p.attend()
}

// endIfDone ends the thread if there is nothing left for it to do.
func (p *poller) endIfDone() {
	if p.closing && len(p.conns) == len(p.vacant) {
		atomic.StoreUint32(&p.ending, 1)
	}
}

func (p *poller) run() {
	runtime.LockOSThread() // for good: the thread ends with its goroutine, and its priority with it
	haste.Ask()            // when hundreds of streams end at once our own threads compete with it, too
	if p.ordinary {
		p.receiveOrdinarily()
	} else {
		p.free()
	}
	_ = unix.Close(p.epoll) // nothing was written to it
	_ = p.bell.Close()      // it ends attend
}

// attend sorts what has come whenever the bell rings. It does not read from the bell:
// the runtime's poller wakes it for each ring, and called says whether there was one
// while it was not waiting.
func (p *poller) attend() {
	bell, err := p.bell.SyscallConn()
	for err == nil {
		err = bell.Read(func(uintptr) bool { return atomic.SwapUint32(&p.called, 0) != 0 })
		p.sort()
	}
}

// sort gives what was received to the connections. Anybody may call it who does not
// hold the lock of one.
func (p *poller) sort() {
	p.sorting.Lock()
	defer p.sorting.Unlock()
	for tail := atomic.LoadInt64(&p.tail); tail != atomic.LoadInt64(&p.head); {
		a := p.number(tail)
		if c := p.who(a.key); c != nil {
			p.give(c, a)
		}
		tail++
		atomic.StoreInt64(&p.tail, tail)
	}
	p.release(now())
}

func (p *poller) give(c *polled, a *arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.told == 0 {
		c.sorted++
	}
	switch {
	case c.closed:
	case a.told != 0:
		p.heed(c, a.told)
	case c.err != nil:
	case a.errno != 0:
		c.end(&net.OpError{Op: "read", Net: "tcp", Source: c.local, Addr: c.remote, Err: os.NewSyscallError("recvmsg", syscall.Errno(a.errno))})
	case a.size == 0:
		c.end(io.EOF)
	default:
		c.take(p.bytes[a.first:a.first+a.size], stampOf(a.at, a.polledAt, a.empty))
		p.wakeLater(c, a.polledAt)
	}
}

// heed does what the kernel's word on a connection calls for.
func (p *poller) heed(c *polled, events uint32) {
	if events&unix.EPOLLERR != 0 && c.takeLeaving(p.receiver) {
		events &^= unix.EPOLLERR // it was no error
	}
	if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		c.wantsRoom = false // or a write will tell why there is none
		_ = c.watch()       // it is watched already, and a change of that does not fail
		c.changed.Broadcast()
	}
}

// wakeLater wakes the reader of a connection, or does so later.
func (p *poller) wakeLater(c *polled, polledAt int64) {
	switch hold := c.mayHold(); {
	case hold && !c.held:
		c.held, c.heldUntil = true, polledAt+int64(holdTime)
		p.held = append(p.held, c)
	case hold:
	default:
		c.wake()
	}
}

// release wakes the readers of connections that were held long enough, and says when
// that is to be done again.
func (p *poller) release(now int64) {
	for len(p.held) > 0 && p.held[0].heldUntil <= now {
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
	due := int64(never)
	if len(p.held) > 0 {
		due = max(p.held[0].heldUntil, now+int64(endTime))
	}
	atomic.StoreInt64(&p.due, due)
}
