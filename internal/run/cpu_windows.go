package run

import (
	"time"

	"golang.org/x/sys/windows"
)

// processSeconds returns the CPU time used by this process.
func processSeconds() float64 {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := int64(kernel.HighDateTime)<<32 + int64(kernel.LowDateTime) + int64(user.HighDateTime)<<32 + int64(user.LowDateTime)
	return time.Duration(ticks * 100).Seconds()
}
