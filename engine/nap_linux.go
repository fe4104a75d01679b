package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepFinely sleeps for d in the kernel, which may wake a thread 50
// microseconds late to save power unless it is asked not to. A signal may cut
// the sleep short; the runtime sends them to preempt, so the rest is slept again.
func sleepFinely(d time.Duration) {
	// Without the right to change it, sleeps are a little longer and all else is
	// the same. The runtime may have moved us to another thread since the last time.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(int64(d))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, &ts) == unix.EINTR {
	}
}
