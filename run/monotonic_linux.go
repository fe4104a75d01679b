package run

import "golang.org/x/sys/unix"

// monotonicSeconds is CLOCK_MONOTONIC, which is what Python's perf_counter
// shows on Linux: times of both tools on one host compare.
func monotonicSeconds() float64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return float64(ts.Nano()) / 1e9
}
