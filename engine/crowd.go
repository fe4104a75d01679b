package engine

import (
	"runtime"
	"time"

	"tacho"
)

// A crowd is sessions that are due at one time. Each has its goroutine before,
// so that all that is left to do at that time is to send.
type crowd struct {
	runner *runner
	ahead  *ahead
	bytes  int64
	gate   chan struct{}
}

// gathers says whether sessions that are due then do not have to wait for slots.
func (r *runner) gathers(due time.Duration) bool {
	return due != tacho.ASAP && r.Limit == 0 && !r.over(due)
}

// crowdOf is a session with those that are due when it is; nil if there is none.
func (r *runner) crowdOf(a *ahead, it *item) *crowd {
	if !r.gathers(it.due) {
		return nil
	}
	second := a.at(it.due)
	if second == nil {
		return nil
	}
	return r.gather(a, it.due, it, second)
}

// gather makes a crowd of sessions that are due at one time and those behind them
// that are, too, and are ready: it does not wait for what is being prepared.
func (r *runner) gather(a *ahead, due time.Duration, first ...*item) *crowd {
	c := &crowd{runner: r, ahead: a, gate: make(chan struct{})}
	for _, it := range first {
		c.add(it)
	}
	for ready := len(a.items); ready >= 0; ready-- {
		it := a.at(due)
		if it == nil {
			break
		}
		c.add(it)
	}
	return c
}

func (c *crowd) add(it *item) {
	c.bytes += it.bytes
	r := c.runner
	r.sessions.Go(func() {
		stretch()
		<-c.gate
		if slot := r.now(); r.arriving.Err() == nil && !r.over(slot) {
			r.session(it, slot)
		}
	})
}

// stretch makes the stack as large as a request needs it: to do so on the way
// takes as long as to send.
//
//go:noinline
func stretch() {
	var room [2 << 10]byte
	runtime.KeepAlive(&room)
}

// release has all of them go.
func (c *crowd) release() {
	close(c.gate)
	c.ahead.release(c.bytes)
}
