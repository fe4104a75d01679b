//go:build !linux

package engine

import "time"

func steadyThread() (undo func()) { return func() {} }

// sleepFinely sleeps as finely as the runtime can.
func sleepFinely(d time.Duration) { time.Sleep(d) }
