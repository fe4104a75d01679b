package sim

import "time"

// A waker lets one goroutine wait and others wake it.
type waker interface {
	wake()
	wait(most time.Duration) // returns after wake or after the given time; immediately if wake was called before
	close()                  // wake and wait must not be called afterwards
}

// forever is longer than any wait.
const forever = time.Hour

// timerWaker uses the runtime's timers, so it works with the fake time of tests. In
// an otherwise idle process these timers fire up to a millisecond late.
type timerWaker struct {
	woken chan struct{}
	timer *time.Timer
}

func newTimerWaker() *timerWaker {
	return &timerWaker{woken: make(chan struct{}, 1), timer: time.NewTimer(forever)}
}

func (g *timerWaker) wake() {
	select {
	case g.woken <- struct{}{}:
	default: // already woken
	}
}

func (g *timerWaker) wait(most time.Duration) {
	g.timer.Reset(most)
	select {
	case <-g.woken:
	case <-g.timer.C:
	}
}

func (g *timerWaker) close() { g.timer.Stop() }
