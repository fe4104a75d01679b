//go:build !linux

package run

import "time"

var processStart = time.Now()

// monotonicSeconds is a clock that only goes forward, from some point on.
func monotonicSeconds() float64 { return time.Since(processStart).Seconds() }

// sinceBoot is the wall clock, which goes on while the machine is suspended.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }

func readStolen() (processorTime, bool) { return processorTime{}, false }
