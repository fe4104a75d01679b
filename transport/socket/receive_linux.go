package socket

import (
	"math"
	"math/bits"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/transport/framing"
)

const (
	// ringArrivals and ringBytes hold the arrivals of 5,000 streams for 100 ms, the
	// longest time sort may have to wait for a core.
	ringArrivals = 16 << 10
	ringBytes    = 4 << 20
	receiveMost  = 64 << 10
	// sortMost and sortBytes are how many arrivals and bytes may be pending before a
	// wakeup.
	sortMost  = 1 << 10
	sortBytes = 256 << 10
	// fullTime is how long the thread sleeps if the ring is full.
	fullTime = 200 * time.Microsecond

	never = math.MaxInt64
)

// thread is the state of the receive thread. The thread waits for epoll events and
// receives once from each ready connection. That costs one system call per segment; the
// runtime's poller needs two, and a goroutine switch. The thread does nothing else, so it
// is seldom late, and segments seldom merge before they are timestamped. All of its
// functions are nosplit and norace: see receiveWithoutP.
type thread struct {
	// Shared with other threads, accessed atomically.
	due         int64  // time at which the next held connection is released
	empty       int64  // time at which all sockets were empty, except for bytes received since
	wakePending uint32 // a wakeup was sent and sortLoop did not handle it yet
	ending      uint32

	ordinary bool // runs on an ordinary goroutine, not as receiveWithoutP
	ring
	epoll     int
	hasPwait2 bool // the kernel has epoll_pwait2 with nanosecond timeouts (Linux 5.11)
	wakeup    int
	blocks    [maxBlocks]*block

	events    [batch]unix.EpollEvent
	msg       unix.Msghdr
	iov       [2]uintptr // a unix.Iovec without a pointer: address and length
	control   control
	waitSpec  [2]int64 // a 64-bit unix.Timespec, the timeout of wait
	sleepSpec [2]int   // a unix.Timespec of words, the duration of sleep

	info     unix.TCPInfo
	infoSize uint32

	now             int64 // last reading of the clock
	pollStart       int64 // start of the last poll
	pollTimeout     int64 // timeout of the last poll
	interrupted     bool  // a signal interrupted the last poll
	lastReceive     int64 // time of the last receive
	lastMerged      int64 // time of the last receive with several events
	transmitted     bool  // a transmit timestamp is queued, which is not urgent
	urgent          bool  // something waits for a pending arrival
	pending         int   // arrivals in the ring since the last wakeup
	pendingDeadline int64 // deadline of the first pending arrival
	pendingBytes    int   // bytes of the pending arrivals
	pendingEnds     int   // pending ends of responses that nothing waits for
	endsDeadline    int64 // deadline of the first pending end
	gathering
}

// control is the control message with the kernel's timestamp. The thread requests no other
// control messages.
type control struct {
	size        uintptr
	level, kind int32
	at          [2]int // the first of three timespecs
	others      [12]uintptr
}

const controlSize = 16 * bits.UintSize / 8

func (t *thread) init(epoll, wakeup int) {
	t.epoll, t.wakeup, t.due = epoll, wakeup, never
	t.hasPwait2 = true
	_, errno := t.wait(0)
	t.hasPwait2 = errno == 0
	t.ring = newRing(ringArrivals, ringBytes, receiveMost)
	t.msg.Iov = (*unix.Iovec)(unsafe.Pointer(&t.iov))
	t.msg.SetIovlen(1)
	t.msg.Control = (*byte)(unsafe.Pointer(&t.control))
}

// poll waits for events and returns the number of ready connections. The caller then calls
// serve for each of them, and finish.
//
//go:nosplit
//go:norace
func (t *thread) poll() int {
	t.pollStart, t.pollTimeout = clock(), t.timeout()
	n, errno := t.wait(t.pollTimeout)
	t.now, t.interrupted = clock(), errno != 0
	return n
}

// finish ends a turn in which n connections were served.
//
//go:nosplit
//go:norace
func (t *thread) finish(n int) {
	if !t.interrupted {
		t.noteEmpty(n, t.pollStart, t.pollTimeout)
	}
	t.wakeIfDue()
	t.gather(n)
}

// noteEmpty notes when the sockets were empty. n connections were ready at time asOf, or
// became ready within most.
//
//go:nosplit
//go:norace
func (t *thread) noteEmpty(n int, asOf, most int64) {
	switch {
	case n == 0: // nothing arrived until the timeout
		store64(&t.empty, asOf+most)
	case n < batch: // epoll reported all ready sockets
		store64(&t.empty, asOf)
	}
}

// wait waits for ready connections for at most most nanoseconds. A kernel that counts
// milliseconds gets a rounded-up timeout. Rounded down, the thread would poll in a busy
// loop during the last millisecond.
//
//go:nosplit
//go:norace
func (t *thread) wait(most int64) (n int, errno syscall.Errno) {
	var got uintptr
	events := uintptr(unsafe.Pointer(&t.events))
	if t.hasPwait2 {
		t.waitSpec = [2]int64{most / int64(time.Second), most % int64(time.Second)}
		got, errno = t.block(unix.SYS_EPOLL_PWAIT2, uintptr(t.epoll), events, batch, uintptr(unsafe.Pointer(&t.waitSpec)))
	} else {
		millis := (most + int64(time.Millisecond) - 1) / int64(time.Millisecond)
		got, errno = t.block(unix.SYS_EPOLL_PWAIT, uintptr(t.epoll), events, batch, uintptr(millis))
	}
	if errno != 0 {
		return 0, errno
	}
	return int(got), 0
}

// recentlyMerged reports whether a receive within mergedWindow contained several events.
//
//go:nosplit
//go:norace
func (t *thread) recentlyMerged() bool { return t.now-t.lastMerged < int64(mergedWindow) }

// timeout returns how long the next poll may wait: until the next deadline, or for a
// fraction of the silence.
//
//go:nosplit
//go:norace
func (t *thread) timeout() int64 {
	leastLoaded := minPollInterval
	if t.recentlyMerged() {
		leastLoaded = mergedPollInterval
	}
	left := min(int64(maxPollInterval), max(int64(leastLoaded), (t.now-t.lastReceive)/silenceFraction))
	left = min(left, load64(&t.due)-t.now)
	if t.pending > 0 {
		left = min(left, t.pendingDeadline-t.now)
	}
	if t.pendingEnds > 0 {
		left = min(left, t.endsDeadline-t.now)
	}
	return max(0, left)
}

// serve receives from a ready connection. epoll reports new bytes only once, so serve must
// not leave any behind.
//
//go:nosplit
//go:norace
func (t *thread) serve(e *unix.EpollEvent) {
	k := key{e.Fd, uint32(e.Pad)}
	if e.Events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		t.pass(k, e.Events)
	}
	if e.Events&^unix.EPOLLOUT == 0 {
		return
	}
	ends := e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	for more := true; more; { // a short receive leaves nothing behind but the end of the stream
		t.await()
		a, s := t.nextArrival(), t.slotOf(k.number)
		if !s.acquire(k.generation) {
			return
		}
		a.key, a.events, a.polledAt, a.empty = k, 0, t.now, t.emptySince(s)
		flags := load32(&s.flags)
		got := t.receive(s, flags, a)
		p := t.bytes[t.next : t.next+a.size]
		if got {
			t.noteMerging(s, a, p)
		}
		s.release(k.generation)
		if !got {
			return
		}
		t.schedule(flags, p)
		more = a.size == t.most || ends && a.size > 0
		t.put(a)
	}
}

// pass puts epoll events into the ring. A writer may wait for room, or a reader for the
// end. EPOLLERR is nearly always a transmit timestamp, which is not urgent.
//
//go:nosplit
//go:norace
func (t *thread) pass(k key, events uint32) {
	t.await()
	a := t.nextArrival()
	a.key, a.events, a.size = k, events, 0
	t.put(a)
	t.addPending(0)
	t.urgent = t.urgent || events&(unix.EPOLLOUT|unix.EPOLLHUP) != 0
	t.transmitted = t.transmitted || events&unix.EPOLLERR != 0
}

// await waits until the ring has room for an arrival.
//
//go:nosplit
//go:norace
func (t *thread) await() {
	for !t.room() {
		t.wake()
		t.sleep(fullTime)
		t.now = clock()
	}
}

// receive receives once from a connection, with the time at which the kernel received the
// last of the bytes. It reports whether there was an arrival.
//
//go:nosplit
//go:norace
func (t *thread) receive(s *slot, flags uint32, a *arrival) bool {
	a.at, a.size, a.errno = 0, 0, 0
	if flags&slotPaused != 0 { // epoll reports the bytes again after the pause
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
		t.lastReceive = t.now
		t.count(&s.counted, t.now)
		if s.bytes += uint64(n); a.size < t.most { // a full buffer may end within a segment
			s.receives++
		}
	}
	if c := &t.control; t.msg.Controllen > 0 && c.level == unix.SOL_SOCKET && c.kind == unix.SO_TIMESTAMPING {
		a.at = int64(c.at[0])*int64(time.Second) + int64(c.at[1])
	}
	return true
}

// noteMerging notes whether the receive contained several events, and whether a single
// segment carried them. The end of a response usually arrives merged, and nothing follows
// it. No byte of a TLS record is usable before its last byte arrives, so the events of one
// record arrived together.
//
//go:nosplit
//go:norace
func (t *thread) noteMerging(s *slot, a *arrival, p []byte) {
	head := framing.Head(p)
	if s.several && !head && !framing.Last(p) {
		t.lastMerged = t.now
	}
	s.several = framing.Several(p)
	if together := framing.Record(p) == len(p) || (s.several || head) && t.singleSegment(s); together && a.at != 0 {
		a.empty = a.at
	}
}

// singleSegment reports whether the last receive was exactly one segment, so that all of
// its bytes arrived together. The kernel counts bytes, and segments including
// retransmitted ones. If all bytes were received, and the number of segments since the
// last such moment equals the number of receives, each receive was one segment. No receive
// was less than a segment, because none ended within one.
//
//go:nosplit
//go:norace
func (t *thread) singleSegment(s *slot) bool {
	const want = unsafe.Offsetof(t.info.Data_segs_in) + unsafe.Sizeof(t.info.Data_segs_in)
	t.infoSize = uint32(want)
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.IPPROTO_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&t.info)), uintptr(unsafe.Pointer(&t.infoSize)), 0)
	if errno != 0 || t.infoSize < uint32(want) || t.info.Bytes_received != s.bytes {
		return false
	}
	singleSegment := t.info.Data_segs_in-s.segments == s.receives
	s.segments, s.receives = t.info.Data_segs_in, 0
	return singleSegment
}

// emptySince returns a time at which the socket of s held none of the bytes received now.
//
//go:nosplit
//go:norace
func (t *thread) emptySince(s *slot) int64 {
	empty := t.empty
	if load64(&s.unwatchedUntil) > empty { // no poll finished since the socket is watched again
		empty = min(empty, load64(&s.unwatchedFrom))
	}
	return empty
}

// addPending counts an arrival in the ring.
//
//go:nosplit
//go:norace
func (t *thread) addPending(size int) {
	if t.pending++; t.pending == 1 {
		t.pendingDeadline = t.now + int64(holdTime)
	}
	t.pendingBytes += size
}

// schedule decides when the arrival must be sorted. It is urgent if something may wait for
// it.
//
//go:nosplit
//go:norace
func (t *thread) schedule(flags uint32, p []byte) {
	t.addPending(len(p))
	whole := framing.WholeEvents(p)
	switch {
	case flags&slotPlainEvents == 0 && flags&slotRelaxedEnd != 0 && len(p) > 0: // perhaps the end of a response
		t.pendingDeadline = min(t.pendingDeadline, t.now+int64(endDelay))
		return
	case flags&slotPlainEvents == 0 || len(p) == 0: // the end of a response is unknown, or the stream ended
		t.urgent = true
		return
	case whole:
		return
	}
	t.ended++
	if flags&slotRelaxedEnd == 0 {
		t.awaited++
	}
	switch {
	case framing.BareHead(p):
	case flags&slotRelaxedEnd == 0:
		t.urgent = true
	default:
		if t.pendingEnds++; t.pendingEnds == 1 {
			t.endsDeadline = t.now + int64(endDelay)
		}
	}
}

// wakeIfDue wakes sortLoop if a limit or a deadline is reached.
//
//go:nosplit
//go:norace
func (t *thread) wakeIfDue() {
	wake := t.urgent || t.pending >= sortMost || t.pendingBytes >= sortBytes || t.pendingEnds >= maxEnds ||
		t.pending > 0 && t.pendingDeadline <= t.now || t.pendingEnds > 0 && t.endsDeadline <= t.now
	if due := load64(&t.due); due <= t.now && cas64(&t.due, due, never) {
		wake = true
	}
	if wake {
		t.wake()
	}
}

// wake wakes sortLoop through the eventfd.
//
//go:nosplit
//go:norace
func (t *thread) wake() {
	t.urgent, t.pending, t.pendingBytes, t.pendingEnds = false, 0, 0, 0
	if !cas32(&t.wakePending, 0, 1) {
		return
	}
	one := uint64(1) // any value far from the maximum of the counter
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, uintptr(t.wakeup), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one), 0, 0, 0)
}

// gather sleeps after a batch of n if segments may gather.
//
//go:nosplit
//go:norace
func (t *thread) gather(n int) {
	t.update(t.now)
	if t.period == 0 && !t.transmitted {
		return
	}
	if d := t.pause(n, clock()); d > 0 {
		t.sleep(d)
	}
}

// pause returns how long segments may gather after a batch of n: to the end of the period
// that began with the batch. It is 0 if gathering does not pay, or if a full batch shows
// that more is waiting. The period is short if a recent receive was merged.
//
//go:nosplit
//go:norace
func (t *thread) pause(n int, now int64) time.Duration {
	period := t.period
	if t.recentlyMerged() {
		period = min(period, mergedPollInterval)
	}
	if t.transmitted {
		period = max(period, gatherTime)
	}
	t.transmitted = false
	if n == batch {
		return 0
	}
	return min(period, max(0, period-time.Duration(now-t.now))) // the wall clock may be set back
}

// A ring passes arrivals from the receive thread to sort. Its pointers never change,
// because the receive thread must not write pointers.
type ring struct {
	head, tail int64 // arrivals put and arrivals sorted; accessed atomically
	base       int64 // number of the arrival at index 0; accessed atomically
	arrivals   []arrival
	bytes      []byte
	most       int // maximum size of one arrival
	next       int // offset of the bytes of the next arrival
}

// An arrival is the result of one receive: bytes, an error, or neither at the end of the
// stream. If events is set, the arrival is a set of epoll events other than EPOLLIN
// instead.
type arrival struct {
	at       int64 // the kernel's time; 0 is unknown
	polledAt int64
	empty    int64 // a time at which the socket held none of these bytes
	key
	events      uint32
	errno       uint32
	first, size int // range of ring.bytes
}

func newRing(arrivals, bytes, most int) ring {
	return ring{arrivals: make([]arrival, arrivals), bytes: make([]byte, bytes), most: most}
}

// room reports whether the ring has room for one more arrival. The bytes of an arrival are
// contiguous: if too few bytes are left at the end of the buffer, they start at offset 0.
// If all arrivals are sorted, the ring starts again at index 0, so that it stays in the
// CPU cache.
//
//go:nosplit
//go:norace
func (r *ring) room() bool {
	tail := load64(&r.tail)
	if r.head == tail {
		r.next = 0
		store64(&r.base, tail)
		return true
	}
	if r.head-tail >= int64(len(r.arrivals)) {
		return false
	}
	oldest := r.at(tail).first
	switch {
	case r.next < oldest:
		return r.next+r.most < oldest
	case r.next+r.most <= len(r.bytes):
		return true
	case r.most < oldest:
		r.next = 0
		return true
	}
	return false
}

// nextArrival returns the arrival to fill before put.
//
//go:nosplit
//go:norace
func (r *ring) nextArrival() *arrival { return r.at(r.head) }

// at returns arrival number n, which must not be sorted yet.
//
//go:nosplit
//go:norace
func (r *ring) at(n int64) *arrival {
	return &r.arrivals[(n-load64(&r.base))%int64(len(r.arrivals))]
}

// put publishes the arrival that nextArrival returned.
//
//go:nosplit
//go:norace
func (r *ring) put(a *arrival) {
	a.first = r.next
	r.next += a.size
	store64(&r.head, r.head+1)
}
