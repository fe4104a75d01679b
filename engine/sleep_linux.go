package engine

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleepPrecisely sleeps in the kernel for at most d. A signal may interrupt it, and the
// runtime sends signals. The kernel may wake a thread 50 microseconds late to save power,
// unless the timer slack is reduced.
//
// If there are more Ps (Go's scheduler) than cores, the system call is raw. In a known
// system call the runtime would repeatedly wake another thread to take over the P.
func sleepPrecisely(d time.Duration) {
	// If the process may not change the slack, sleeps are slightly longer. The call is
	// repeated, because the runtime may have moved the goroutine to another thread.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(int64(d))
	if runtime.GOMAXPROCS(0) > runtime.NumCPU() {
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	} else {
		_ = unix.Nanosleep(&ts, nil)
	}
}
