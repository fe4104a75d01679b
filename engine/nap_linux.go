package engine

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleepFinely sleeps for d in the kernel, or less: a signal may cut the sleep short,
// and the runtime sends them. The kernel may wake a thread 50 microseconds late to
// save power unless it is asked not to.
//
// Go's runtime is not told of the sleep, where it has turns to spare. If it were, it
// would wake another thread again and again, to take this one's turn away.
func sleepFinely(d time.Duration) {
	// Without the right to change it, sleeps are a little longer and all else is
	// the same. The runtime may have moved us to another thread since the last time.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(int64(d))
	if runtime.GOMAXPROCS(0) > runtime.NumCPU() {
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	} else {
		_ = unix.Nanosleep(&ts, nil)
	}
}
