package run

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// monotonicSeconds reads CLOCK_MONOTONIC, like Python's perf_counter on Linux,
// so that times of both tools on one host are comparable.
func monotonicSeconds() float64 { return clock(unix.CLOCK_MONOTONIC).Seconds() }

// sinceBoot includes the time the machine was suspended, unlike the monotonic
// clock.
func sinceBoot() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// readStolen returns the CPU time of the machine since boot.
func readStolen() (processorTime, bool) {
	page, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTime{}, false
	}
	return parseStolen(string(page))
}
