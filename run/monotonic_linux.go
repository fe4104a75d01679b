package run

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// monotonicSeconds is CLOCK_MONOTONIC, which is what Python's perf_counter
// shows on Linux: times of both tools on one host compare.
func monotonicSeconds() float64 { return clock(unix.CLOCK_MONOTONIC).Seconds() }

// sinceBoot goes on while the machine is suspended, as the monotonic clock does
// not.
func sinceBoot() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// readStolen is the processor time of the machine so far.
func readStolen() (processorTime, bool) {
	page, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTime{}, false
	}
	return parseStolen(string(page))
}
