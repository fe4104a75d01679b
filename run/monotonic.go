package run

import "time"

// monotonicAt is the monotonic clock at a moment, which may lie in the future:
// a level is told its epoch before the first request is due.
func monotonicAt(t time.Time) float64 { return monotonicSeconds() + time.Until(t).Seconds() }
