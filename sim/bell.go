package sim

import "time"

// A bell lets one goroutine wait, and others wake it.
type bell interface {
	ring()
	wait(most time.Duration) // until it is rung, at most so long; rung before, it waits not at all
	close()                  // nobody rings or waits after that
}

// forever is longer than anybody waits.
const forever = time.Hour

// gong is a bell by the timers of the runtime, and so in the time of a test. They
// are up to a millisecond late where the process has nothing else to do.
type gong struct {
	rung  chan struct{}
	timer *time.Timer
}

func newGong() *gong { return &gong{rung: make(chan struct{}, 1), timer: time.NewTimer(forever)} }

func (g *gong) ring() {
	select {
	case g.rung <- struct{}{}:
	default: // it is
	}
}

func (g *gong) wait(most time.Duration) {
	g.timer.Reset(most)
	select {
	case <-g.rung:
	case <-g.timer.C:
	}
}

func (g *gong) close() { g.timer.Stop() }
