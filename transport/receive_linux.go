package transport

import (
	"math"
	"math/bits"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// ringArrivals and ringBytes are what may lie between the thread and those who
	// sort: what 5,000 streams bring in the tenth of a second that these may have to
	// wait for a core.
	ringArrivals = 16 << 10
	ringBytes    = 4 << 20
	receiveMost  = 64 << 10
	// sortMost and sortBytes are how much may lie there before it is sorted.
	sortMost  = 1 << 10
	sortBytes = 256 << 10
	// fullTime is how long the thread sleeps when there is no more room.
	fullTime = 200 * time.Microsecond

	never = math.MaxInt64
)

// A thread is what the thread that receives works with. It waits for the kernel to
// tell which connections have something, and receives once from each. That is one
// system call for a segment, where the runtime's poller needs two and a goroutine's
// turn; and as it does nothing else it is seldom late, so that segments seldom merge
// before they are stamped. All of its functions are nosplit and norace: see free.
type thread struct {
	// What others tell it, or it tells others: atomically.
	due    int64  // when the next held connection's time is up
	empty  int64  // when nothing lay in any socket but what it received after
	called uint32 // it has rung the bell, and nobody has come yet
	ending uint32

	ordinary bool // it runs on an ordinary goroutine, and not as in free
	ring
	epoll  int
	fine   bool // the kernel waits for parts of a millisecond (Linux 5.11)
	bell   int
	blocks [blocksMost]*block

	events  [batch]unix.EpollEvent
	msg     unix.Msghdr
	iov     [2]uintptr // a unix.Iovec without a pointer: where, and how much
	control control
	limit   [2]int64 // a unix.Timespec of 64 bits: how long wait waits at most,
	words   [2]int   // and one of words: how long sleep sleeps

	info     unix.TCPInfo
	infoSize uint32

	now      int64 // when it last looked at the clock
	asked    int64 // when it last asked for events,
	waited   int64 // for how long it waited at most,
	cut      bool  // and whether a signal cut that short
	heard    int64 // when it last received
	merged   int64 // when that was last more than one event
	told     bool  // something left: that need not be heard at once
	urgent   bool  // somebody waits for something that lies in the ring
	lie      int   // arrivals there since it last rang the bell,
	lieBy    int64 // when the time of the first is up,
	lieBytes int   // and how much they are
	ends     int   // how many end an answer that nothing waits for,
	endsBy   int64 // and when their time is up
	gathering
}

// A control is the control message that has the kernel's time. It is the only one
// that is asked for.
type control struct {
	size        uintptr
	level, kind int32
	at          [2]int // the first of three timespecs
	others      [12]uintptr
}

const controlSize = 16 * bits.UintSize / 8

func (t *thread) init(epoll, bell int) {
	t.epoll, t.bell, t.due = epoll, bell, never
	t.fine = true
	_, errno := t.wait(0)
	t.fine = errno == 0
	t.ring = newRing(ringArrivals, ringBytes, receiveMost)
	t.msg.Iov = (*unix.Iovec)(unsafe.Pointer(&t.iov))
	t.msg.SetIovlen(1)
	t.msg.Control = (*byte)(unsafe.Pointer(&t.control))
}

// look waits for events, and returns how many connections have some. After it serve is
// called for each, and then finish: that is one turn of the receiver.
//
//go:nosplit
//go:norace
func (t *thread) look() int {
	t.asked, t.waited = clock(), t.waitMost()
	n, errno := t.wait(t.waited)
	t.now, t.cut = clock(), errno != 0
	return n
}

// finish ends a turn in which n connections were served.
//
//go:nosplit
//go:norace
func (t *thread) finish(n int) {
	if !t.cut {
		t.served(n, t.asked, t.waited)
	}
	t.callIfDue()
	t.gather(n)
}

// served notes when sockets were empty, after n were served that had something when it
// asked, or came to have it within the most that it waited.
//
//go:nosplit
//go:norace
func (t *thread) served(n int, asked, most int64) {
	switch {
	case n == 0: // nothing came in all that time
		store64(&t.empty, asked+most)
	case n < batch: // it was told of all that had something
		store64(&t.empty, asked)
	}
}

// wait waits for connections that have something, for so many nanoseconds at most.
// Where the kernel counts milliseconds, it is rounded up: rounded down, the last one
// would be spent on asking again and again.
//
//go:nosplit
//go:norace
func (t *thread) wait(most int64) (n int, errno syscall.Errno) {
	var got uintptr
	events := uintptr(unsafe.Pointer(&t.events))
	if t.fine {
		t.limit = [2]int64{most / int64(time.Second), most % int64(time.Second)}
		got, errno = t.block(unix.SYS_EPOLL_PWAIT2, uintptr(t.epoll), events, batch, uintptr(unsafe.Pointer(&t.limit)))
	} else {
		millis := (most + int64(time.Millisecond) - 1) / int64(time.Millisecond)
		got, errno = t.block(unix.SYS_EPOLL_PWAIT, uintptr(t.epoll), events, batch, uintptr(millis))
	}
	if errno != 0 {
		return 0, errno
	}
	return int(got), 0
}

// mergedOfLate says whether something came merged within the last two seconds.
//
//go:nosplit
//go:norace
func (t *thread) mergedOfLate() bool { return t.now-t.merged < int64(mergeTime) }

// waitMost is for how long to wait at most: until something must be sorted, or for a
// part of the silence.
//
//go:nosplit
//go:norace
func (t *thread) waitMost() int64 {
	least := lookTime
	if t.mergedOfLate() {
		least = closeTime
	}
	left := min(int64(lookMost), max(int64(least), (t.now-t.heard)/silencePart))
	left = min(left, load64(&t.due)-t.now)
	if t.lie > 0 {
		left = min(left, t.lieBy-t.now)
	}
	if t.ends > 0 {
		left = min(left, t.endsBy-t.now)
	}
	return max(0, left)
}

// serve receives what a connection has. The kernel tells once of what came, and not
// again of what was left there.
//
//go:nosplit
//go:norace
func (t *thread) serve(e *unix.EpollEvent) {
	who := key{e.Fd, uint32(e.Pad)}
	if e.Events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		t.pass(who, e.Events)
	}
	if e.Events&^unix.EPOLLOUT == 0 {
		return
	}
	ends := e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	for more := true; more; { // after less than was asked for there may be no more than the end
		t.await()
		a, s := t.last(), t.seatOf(who.number)
		if !s.enter(who.generation) {
			return
		}
		a.key, a.told, a.polledAt, a.empty = who, 0, t.now, t.emptyOf(s)
		flags := load32(&s.flags)
		got := t.receive(s, flags, a)
		p := t.bytes[t.next : t.next+a.size]
		if got {
			t.compare(s, a, p)
		}
		s.leave(who.generation)
		if !got {
			return
		}
		t.weigh(flags, p)
		more = a.size == t.most || ends && a.size > 0
		t.put(a)
	}
}

// pass hands on what the kernel told. Somebody may wait for room, or for the end. An
// error is hardly ever one: something left, and that need not be heard at once.
//
//go:nosplit
//go:norace
func (t *thread) pass(who key, events uint32) {
	t.await()
	a := t.last()
	a.key, a.told, a.size = who, events, 0
	t.put(a)
	t.lies(0)
	t.urgent = t.urgent || events&(unix.EPOLLOUT|unix.EPOLLHUP) != 0
	t.told = t.told || events&unix.EPOLLERR != 0
}

// await waits until there is room for an arrival.
//
//go:nosplit
//go:norace
func (t *thread) await() {
	for !t.room() {
		t.call()
		t.sleep(fullTime)
		t.now = clock()
	}
}

// receive is one receive from a connection, together with the time at which the
// kernel got the last of the bytes. It says whether there was something.
//
//go:nosplit
//go:norace
func (t *thread) receive(s *seat, flags uint32, a *arrival) bool {
	a.at, a.size, a.errno = 0, 0, 0
	if flags&seatPaused != 0 { // we will be told again
		return false
	}
	t.iov[0], t.iov[1] = uintptr(unsafe.Pointer(&t.bytes[t.next])), uintptr(t.most)
	n, errno := uintptr(0), syscall.EINTR
	for errno == unix.EINTR {
		t.msg.Controllen = controlSize
		n, _, errno = syscall.RawSyscall6(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&t.msg)), unix.MSG_DONTWAIT, 0, 0, 0)
	}
	if errno == unix.EAGAIN {
		return false
	}
	store32(&s.received, s.received+1)
	if errno != 0 {
		a.errno = uint32(errno)
		return true
	}
	if a.size = int(n); a.size > 0 {
		t.heard = t.now
		t.count(&s.counted, t.now)
		if s.bytes += uint64(n); a.size < t.most { // or it may be the first half of a segment
			s.receives++
		}
	}
	if c := &t.control; t.msg.Controllen > 0 && c.level == unix.SOL_SOCKET && c.kind == unix.SO_TIMESTAMPING {
		a.at = int64(c.at[0])*int64(time.Second) + int64(c.at[1])
	}
	return true
}

// compare notes whether several events came together, and whether a segment brought
// them so. What ends an answer comes merged as a rule, and nothing follows. Nothing of a
// TLS record is known before its last byte comes, so the events in it came together.
//
//go:nosplit
//go:norace
func (t *thread) compare(s *seat, a *arrival, p []byte) {
	head := begins(p, "HTTP/")
	if s.several && !head && !begins(p, lastChunk) {
		t.merged = t.now
	}
	s.several = several(p)
	if together := record(p) == len(p) || (s.several || head) && t.alone(s); together && a.at != 0 {
		a.empty = a.at
	}
}

// alone says whether what was just received came in a single segment, so that all of it
// came when that did. The kernel counts segments, repeated ones too, and bytes. If all
// bytes that came were received, and since that was last so there were as many segments
// as receives, each had one: none had less, as none ended within a segment.
//
//go:nosplit
//go:norace
func (t *thread) alone(s *seat) bool {
	const want = unsafe.Offsetof(t.info.Data_segs_in) + unsafe.Sizeof(t.info.Data_segs_in)
	t.infoSize = uint32(want)
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.IPPROTO_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&t.info)), uintptr(unsafe.Pointer(&t.infoSize)), 0)
	if errno != 0 || t.infoSize < uint32(want) || t.info.Bytes_received != s.bytes {
		return false
	}
	alone := t.info.Data_segs_in-s.segments == s.receives
	s.segments, s.receives = t.info.Data_segs_in, 0
	return alone
}

// emptyOf is when nothing lay in a socket but what is received from it now.
//
//go:nosplit
//go:norace
func (t *thread) emptyOf(s *seat) int64 {
	empty := t.empty
	if load64(&s.back) > empty { // it has not looked since
		empty = min(empty, load64(&s.away))
	}
	return empty
}

// lies notes that something lies in the ring.
//
//go:nosplit
//go:norace
func (t *thread) lies(size int) {
	if t.lie++; t.lie == 1 {
		t.lieBy = t.now + int64(holdTime)
	}
	t.lieBytes += size
}

// weigh judges when what came must be sorted: at once where somebody may wait for it.
//
//go:nosplit
//go:norace
func (t *thread) weigh(flags uint32, p []byte) {
	t.lies(len(p))
	whole := wholeEvents(p)
	switch {
	case flags&seatMayBeHeld == 0 || len(p) == 0: // nobody knows where an answer ends, or this is the end
		t.urgent = true
		return
	case whole:
		return
	}
	t.ended++
	if flags&seatUnhurried == 0 {
		t.awaited++
	}
	switch {
	case bareHead(p):
	case flags&seatUnhurried == 0:
		t.urgent = true
	default:
		if t.ends++; t.ends == 1 {
			t.endsBy = t.now + int64(endTime)
		}
	}
}

// callIfDue has things sorted for which it is time.
//
//go:nosplit
//go:norace
func (t *thread) callIfDue() {
	call := t.urgent || t.lie >= sortMost || t.lieBytes >= sortBytes || t.ends >= endsMost ||
		t.lie > 0 && t.lieBy <= t.now || t.ends > 0 && t.endsBy <= t.now
	if due := load64(&t.due); due <= t.now && cas64(&t.due, due, never) {
		call = true
	}
	if call {
		t.call()
	}
}

// call rings the bell.
//
//go:nosplit
//go:norace
func (t *thread) call() {
	t.urgent, t.lie, t.lieBytes, t.ends = false, 0, 0, 0
	if !cas32(&t.called, 0, 1) {
		return
	}
	one := uint64(1) // the sum does not matter, if it is far from the greatest
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, uintptr(t.bell), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one), 0, 0, 0)
}

// gather sleeps for a moment if segments may gather after a batch of n.
//
//go:nosplit
//go:norace
func (t *thread) gather(n int) {
	t.judge(t.now)
	if t.period == 0 && !t.told {
		return
	}
	if d := t.pause(n, clock()); d > 0 {
		t.sleep(d)
	}
}

// pause is how long segments may gather after a batch of n: if so many come
// that it pays, to the end of the period that began with the batch, and not at
// all if more is waiting than a batch can hold. Where some come merged the period
// is short.
//
//go:nosplit
//go:norace
func (t *thread) pause(n int, now int64) time.Duration {
	period := t.period
	if t.mergedOfLate() {
		period = min(period, closeTime)
	}
	if t.told {
		period = max(period, gatherTime)
	}
	t.told = false
	if n == batch {
		return 0
	}
	return min(period, max(0, period-time.Duration(now-t.now))) // the wall clock may be set back
}
