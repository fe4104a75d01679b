//go:build unix

package run

import (
	"time"

	"golang.org/x/sys/unix"
)

// processSeconds returns the CPU time used by this process.
func processSeconds() float64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
}
