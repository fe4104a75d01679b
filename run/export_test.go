package run

// MonotonicSeconds is the clock of start times.
func MonotonicSeconds() float64 { return monotonicSeconds() }
