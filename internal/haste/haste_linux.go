// Package haste asks the kernel to run a thread soon whenever it has work.
package haste

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	nice = -10
	turn = 100 * time.Microsecond
)

// Ask has this thread run before others, which the user may not be allowed; or else
// with short turns, which Linux since 6.12 grants the earlier for being short. Being
// before others helps among the processes of one session alone, where the kernel
// shares processors among sessions. The goroutine should be locked to the thread, and
// the thread end with it.
//
// Note: it must not run in real time. Go's scheduler waits for its other threads by
// spinning, and they would never run: a thread that received spun for the 0.95 s that
// the kernel allows, and all streams stood still.
func Ask() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	usual := attr.Nice
	attr.Nice, attr.Runtime = min(usual, nice), uint64(turn)
	if unix.SchedSetAttr(0, attr, 0) != nil {
		attr.Nice = usual
		_ = unix.SchedSetAttr(0, attr, 0) // an old kernel does not know of turns
	}
}
