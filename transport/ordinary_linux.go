package transport

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiveOrdinarily receives until the poller ends, on a goroutine that holds a P like
// any other. The runtime knows of the system calls that wait, and takes the P meanwhile.
func (t *thread) receiveOrdinarily() {
	for atomic.LoadUint32(&t.ending) == 0 {
		n := t.look()
		for i := range n {
			t.serve(&t.events[i])
		}
		t.finish(n)
	}
}

// block makes a system call that may wait. Pointers among its arguments are to the heap.
//
//go:nosplit
//go:norace
//go:uintptrescapes
func (t *thread) block(trap, a, b, c, d uintptr) (n uintptr, errno syscall.Errno) {
	if t.ordinary {
		return blockKnown(trap, a, b, c, d)
	}
	n, _, errno = syscall.RawSyscall6(trap, a, b, c, d, 0, 0)
	return n, errno
}

// blockKnown makes a system call that the runtime knows of. It is not nosplit, because an
// ordinary goroutine may grow its stack, and it is not inlined, because nosplit callers
// in a build with -N have no room for all that Syscall6 calls.
//
//go:noinline
func blockKnown(trap, a, b, c, d uintptr) (uintptr, syscall.Errno) {
	n, _, errno := syscall.Syscall6(trap, a, b, c, d, 0, 0)
	return n, errno
}

// sleep sleeps for less than a second. A signal may cut it short.
//
//go:nosplit
//go:norace
func (t *thread) sleep(d time.Duration) {
	t.words = [2]int{0, int(d)}
	_, _ = t.block(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t.words)), 0, 0, 0)
}

// clock is the wall clock, as now is.
//
//go:nosplit
//go:norace
func clock() int64 {
	var ts [2]int // seconds and nanoseconds are words
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0)
	return int64(ts[0])*int64(time.Second) + int64(ts[1])
}
