package socket

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/priority"
)

const (
	// holdTime is how long events may wait in a connection before its reader is woken. The
	// events already have their times, and waking a reader once for several events costs a
	// fraction of waking it for each.
	holdTime = time.Second
	// endDelay is how long the end of a response may wait if nothing depends on it, unless
	// maxEnds of them are pending. Waking one reader costs as much as waking five, and
	// hundreds of wakeups in a row would delay requests that are due.
	endDelay = 20 * time.Millisecond
	maxEnds  = 16
	// batch is the maximum number of connections served per poll.
	batch = 512
	// After a silence the thread polls again after 1/silenceFraction of the silence, even
	// without an event. Merged segments then arrived within that fraction of the gap
	// before them. The interval is at least minPollInterval, because polling costs CPU
	// time, and at most maxPollInterval. For mergedWindow after a merged receive it is
	// mergedPollInterval.
	silenceFraction    = 100
	minPollInterval    = 2 * time.Millisecond
	mergedPollInterval = 250 * time.Microsecond
	maxPollInterval    = 500 * time.Millisecond
	mergedWindow       = 2 * time.Second
)

// pollers share the connections of all clients. One thread receives from hundreds of
// connections without being late. More connections get more threads, up to half of the
// CPUs, however many servers there are.
type pollers struct {
	most int

	mu  sync.Mutex
	all []*poller

	users int // number of clocks, guarded by shared.mu
}

// shared holds the pollers of all open clocks. It is nil if no clock is open.
var shared struct {
	mu  sync.Mutex
	all *pollers
}

// sharePollers returns the shared pollers and counts one more user.
func sharePollers() *pollers {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.all == nil {
		shared.all = &pollers{most: max(1, runtime.NumCPU()/2)}
	}
	shared.all.users++
	return shared.all
}

// release is the counterpart of sharePollers. After the last clock is released, each
// thread ends with its last connection.
func (ps *pollers) release() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if ps.users--; ps.users > 0 {
		return
	}
	if shared.all == ps {
		shared.all = nil
	}
	ps.close()
}

// connsPerPoller is the number of connections at which another poller is started.
const connsPerPoller = 512

// leastLoaded returns the poller with the fewest connections, or a new poller.
func (ps *pollers) leastLoaded() (*poller, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var leastLoaded *poller
	var fewest int
	for _, p := range ps.all {
		if n := p.load(); leastLoaded == nil || n < fewest {
			leastLoaded, fewest = p, n
		}
	}
	if leastLoaded != nil && (fewest < connsPerPoller || len(ps.all) >= ps.most) {
		return leastLoaded, nil
	}
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	ps.all = append(ps.all, p)
	p.start()
	return p, nil
}

// close ends each thread after its last connection is closed.
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

// A poller receives for a set of connections. Its receive thread fills the ring, and its
// goroutine sorts the arrivals to the connections.
type poller struct {
	thread
	wakeup *os.File // the file of thread.wakeup

	mu        sync.Mutex
	conns     []*conn // indexed by slot number
	freeSlots []int32 // slot numbers
	closing   bool

	bufferPool bufferPool

	sorting     sync.Mutex
	stampReader *stampReader // guarded by sorting
	held        []*conn      // ordered by heldUntil, guarded by sorting
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
	wakeup, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd", err), unix.Close(epoll))
	}
	p := &poller{wakeup: os.NewFile(uintptr(wakeup), "wakeup"), stampReader: newStampReader()}
	p.init(epoll, wakeup)
	p.ordinary = ordinary || !canRunWithoutP
	return p, nil
}

func (p *poller) start() {
	go p.run()
	go p.sortLoop()
}

// endIfDone ends the thread if the poller is closing and without connections.
func (p *poller) endIfDone() {
	if p.closing && len(p.conns) == len(p.freeSlots) {
		atomic.StoreUint32(&p.ending, 1)
	}
}

func (p *poller) run() {
	runtime.LockOSThread() // never unlocked: the thread and its priority end with the goroutine
	priority.Ask()         // if hundreds of streams end at once, threads of this process compete with the receive thread
	if p.ordinary {
		p.receiveOrdinarily()
	} else {
		p.receiveWithoutP()
	}
	_ = unix.Close(p.epoll) // nothing was written to it
	_ = p.wakeup.Close()    // ends sortLoop
}

// sortLoop sorts arrivals after each wakeup. It does not read from the eventfd: the
// runtime's poller reports each write to it, and wakePending reports a write made while
// sortLoop was not waiting.
func (p *poller) sortLoop() {
	wakeup, err := p.wakeup.SyscallConn()
	for err == nil {
		err = wakeup.Read(func(uintptr) bool { return atomic.SwapUint32(&p.wakePending, 0) != 0 })
		p.sort()
	}
}

// sort moves arrivals from the ring to their connections. The caller must not hold the
// lock of a connection.
func (p *poller) sort() {
	p.sorting.Lock()
	defer p.sorting.Unlock()
	for tail := atomic.LoadInt64(&p.tail); tail != atomic.LoadInt64(&p.head); {
		a := p.at(tail)
		if c := p.connOf(a.key); c != nil {
			p.deliver(c, a)
		}
		tail++
		atomic.StoreInt64(&p.tail, tail)
	}
	p.releaseHeld(now())
}

func (p *poller) deliver(c *conn, a *arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.events == 0 {
		c.sorted++
	}
	switch {
	case c.closed:
	case a.events != 0:
		p.handleEvents(c, a.events)
	case c.err != nil:
	case a.errno != 0:
		c.end(&net.OpError{Op: "read", Net: "tcp", Source: c.local, Addr: c.remote, Err: os.NewSyscallError("recvmsg", syscall.Errno(a.errno))})
	case a.size == 0:
		c.end(c.eof())
	default:
		err := c.take(p.bytes[a.first:a.first+a.size], stampOf(a.at, a.polledAt, a.empty))
		if err != nil {
			c.end(err)
		} else if c.unread() > 0 {
			p.wakeOrHold(c, a.polledAt)
		}
	}
}

// handleEvents handles epoll events other than EPOLLIN.
func (p *poller) handleEvents(c *conn, events uint32) {
	if events&unix.EPOLLERR != 0 && c.readTransmitStamps(p.stampReader) {
		events &^= unix.EPOLLERR // a transmit timestamp, not an error
	}
	if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		c.wantsRoom = false // if there is no room, the next write returns the reason
		_ = c.watch()       // changing a watched socket does not fail
		c.changed.Broadcast()
	}
}

// wakeOrHold wakes the reader of c, or holds c if its bytes are whole events.
func (p *poller) wakeOrHold(c *conn, polledAt int64) {
	switch hold := c.mayHold(); {
	case hold && !c.held:
		c.held, c.heldUntil = true, polledAt+int64(holdTime)
		p.held = append(p.held, c)
	case hold:
	default:
		c.wake()
	}
}

// releaseHeld wakes the readers of connections held long enough, and sets the time of the
// next call.
func (p *poller) releaseHeld(now int64) {
	for len(p.held) > 0 && p.held[0].heldUntil <= now {
		c := p.held[0]
		p.held[0] = nil
		p.held = p.held[1:]
		c.mu.Lock()
		c.held = false
		if c.unread() > 0 {
			c.wake()
			c.released = true
		}
		c.mu.Unlock()
	}
	due := int64(never)
	if len(p.held) > 0 {
		due = max(p.held[0].heldUntil, now+int64(endDelay))
	}
	atomic.StoreInt64(&p.due, due)
}
