package sim

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// eventfdWaker uses an eventfd and the timers of the kernel.
type eventfdWaker struct{ fd int }

// newWaker returns a waker with the precision of the kernel's timers.
func newWaker() waker {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return newTimerWaker()
	}
	return eventfdWaker{fd}
}

func (c eventfdWaker) wake() {
	_, _ = unix.Write(c.fd, binary.NativeEndian.AppendUint64(nil, 1)) // it fails only if the counter is full, and then the waiter wakes anyway
}

func (c eventfdWaker) wait(most time.Duration) {
	// The kernel may wake a thread 50 microseconds late unless the timer slack is
	// lowered. Set the slack on every call, because the runtime may have moved the
	// goroutine to another thread.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(int64(most))
	n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, &ts, nil) // a signal may end the wait early; the caller checks the clock
	if n > 0 {
		var count [8]byte
		_, _ = unix.Read(c.fd, count[:])
	}
}

func (c eventfdWaker) close() { _ = unix.Close(c.fd) }
