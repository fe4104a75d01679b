package run

// MonotonicSeconds is the clock of start times.
func MonotonicSeconds() float64 { return monotonicSeconds() }

// NoHTTP2 says whether a text means that a server does not speak HTTP/2 in the clear.
func NoHTTP2(text string) bool { return noHTTP2(text) }
