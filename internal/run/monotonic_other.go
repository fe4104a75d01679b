//go:build !linux

package run

import "time"

var processStart = time.Now()

// monotonicSeconds is a monotonic clock with an arbitrary origin.
func monotonicSeconds() float64 { return time.Since(processStart).Seconds() }

// sinceBoot is the wall clock, which includes the time the machine was
// suspended.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }

func readStolen() (processorTime, bool) { return processorTime{}, false }
