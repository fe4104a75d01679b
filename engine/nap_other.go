//go:build !linux

package engine

import "time"

// sleepFinely sleeps as finely as the runtime can.
func sleepFinely(d time.Duration) { time.Sleep(d) }
