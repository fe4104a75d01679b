package run

// MonotonicSeconds exports monotonicSeconds.
func MonotonicSeconds() float64 { return monotonicSeconds() }
