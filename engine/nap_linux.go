package engine

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// steadyThread ties the goroutine to a thread whose sleeps the kernel does not
// stretch: by default it may wake a thread 50 microseconds late to save power.
func steadyThread() (undo func()) {
	runtime.LockOSThread()
	// Without the right to change it, sleeps are a little longer and all else is the same.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0 is the default again
		runtime.UnlockOSThread()
	}
}

// sleepFinely sleeps for d in the kernel. A signal may cut it short; the
// runtime sends them to preempt, so the rest is slept again.
func sleepFinely(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, &ts) == unix.EINTR {
	}
}
