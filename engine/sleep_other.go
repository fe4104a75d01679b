//go:build !linux

package engine

import "time"

// sleepPrecisely is as precise as the runtime's timers.
func sleepPrecisely(d time.Duration) { time.Sleep(d) }
