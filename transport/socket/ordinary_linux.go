package socket

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiveOrdinarily receives until the poller ends, on a goroutine with a P. The runtime
// knows of its blocking system calls and uses the P during them.
func (t *thread) receiveOrdinarily() {
	for atomic.LoadUint32(&t.ending) == 0 {
		n := t.poll()
		for i := range n {
			t.serve(&t.events[i])
		}
		t.finish(n)
	}
}

// block makes a system call that may wait. Its pointer arguments must point to the heap.
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

// blockKnown makes a system call known to the runtime. It is not nosplit, because an
// ordinary goroutine may grow its stack. It is not inlined, because in a build with -N its
// nosplit callers have no room for the stack of Syscall6.
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
	t.sleepSpec = [2]int{0, int(d)}
	_, _ = t.block(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t.sleepSpec)), 0, 0, 0)
}

// clock returns the wall clock, as now does.
//
//go:nosplit
//go:norace
func clock() int64 {
	var ts [2]int // seconds and nanoseconds are words
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0)
	return int64(ts[0])*int64(time.Second) + int64(ts[1])
}
