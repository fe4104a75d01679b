package run

import "time"

// monotonicAt converts t to the monotonic clock. t may be in the future,
// because a level knows its epoch before the first request is due.
func monotonicAt(t time.Time) float64 { return monotonicSeconds() + time.Until(t).Seconds() }
