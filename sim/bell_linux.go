package sim

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// chime is a bell by the timers of the kernel.
type chime struct{ fd int }

// newBell returns a bell that is as punctual as the system can be.
func newBell() bell {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return newGong()
	}
	return chime{fd}
}

func (c chime) ring() {
	_, _ = unix.Write(c.fd, binary.NativeEndian.AppendUint64(nil, 1)) // it fails where it was rung too often, and so is rung
}

func (c chime) wait(most time.Duration) {
	// The kernel may wake a thread 50 microseconds late unless it is asked not to. The
	// runtime may have moved us to another thread since the last time.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(int64(most))
	n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, &ts, nil) // a signal ends it before its time: whoever waits looks at the clock
	if n > 0 {
		var count [8]byte
		_, _ = unix.Read(c.fd, count[:])
	}
}

func (c chime) close() { _ = unix.Close(c.fd) }
