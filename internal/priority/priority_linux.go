// Package priority raises the scheduling priority of a thread.
package priority

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	nice  = -10
	slice = 100 * time.Microsecond
)

// Ask asks the kernel to prefer this thread. Ask sets a lower nice value, which the user
// may not be permitted to do, and a short time slice, which Linux 6.12 and later schedules
// earlier. If the kernel groups processes by session, the nice value helps only within the
// session. The goroutine should be locked to the thread, and the thread should end with
// the goroutine.
//
// The thread must not use a real-time policy. Go's scheduler spins while it waits for its
// other threads, and they would never run: a real-time receive thread spun for the 950 ms
// that the kernel allows, and all streams stopped.
func Ask() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	usual := attr.Nice
	attr.Nice, attr.Runtime = min(usual, nice), uint64(slice)
	if unix.SchedSetAttr(0, attr, 0) != nil {
		attr.Nice = usual
		_ = unix.SchedSetAttr(0, attr, 0) // an older kernel ignores the time slice
	}
}
