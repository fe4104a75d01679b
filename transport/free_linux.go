package transport

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The thread that receives is in a system call as far as Go's runtime knows, for
// all of its life. It has no turn of the scheduler that could be taken from it:
// not when it has run for 10 ms, not to look at its stack for garbage, not when
// the world is stopped. On one core each of these kept it from receiving for 10 to
// 80 ms, for it had to wait until another thread had run and given it a turn.
//
// What runs between the two calls must not ask for memory, write a pointer to
// memory of Go's, wait for a lock, or call a function that may need a larger stack:
// all of it is nosplit, and the runtime ends the process if it calls something else.
// It is norace, for the race detector needs a turn, too.

//go:linkname entersyscallblock runtime.entersyscallblock
//go:nosplit
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
//go:nosplit
func exitsyscall()

// free receives until the poller ends.
//
//go:nosplit
//go:norace
func (t *thread) free() {
	entersyscallblock()
	t.loop()
	exitsyscall()
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

// sleep sleeps for less than a second. A signal may cut it short.
//
//go:nosplit
//go:norace
func sleep(d time.Duration) {
	ts := [2]int{0, int(d)}
	_, _, _ = syscall.RawSyscall6(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0, 0)
}
