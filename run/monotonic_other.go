//go:build !linux

package run

import "time"

var processStart = time.Now()

// monotonicSeconds is a clock that only goes forward, from some point on.
func monotonicSeconds() float64 { return time.Since(processStart).Seconds() }
