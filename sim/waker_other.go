//go:build !linux

package sim

// newWaker returns a waker with the precision of the runtime's timers.
func newWaker() waker { return newTimerWaker() }
