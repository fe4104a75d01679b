package sim

import (
	"sync/atomic"
	"time"
)

// A clock is the time the model lives in: it may run faster than the wall
// clock, and it stands still during a pause. Times are offsets from its start.
type clock struct {
	start time.Time
	speed float64
	pause atomic.Pointer[pause] // the latest; nil before the first
}

// A pause is a time in which the model's clock stood still.
type pause struct {
	at     time.Duration // by the model's clock
	begin  time.Time     // by the wall clock
	length time.Duration
	total  time.Duration // of this and all before it
	before *pause
}

func newClock(speed float64) *clock { return &clock{start: time.Now(), speed: speed} }

// at is the model's time at a moment of the wall clock.
func (c *clock) at(t time.Time) time.Duration {
	p := c.pause.Load()
	for p != nil && t.Before(p.begin) {
		p = p.before
	}
	if p == nil {
		return c.faster(t.Sub(c.start))
	}
	if t.Sub(p.begin) < p.length {
		return p.at
	}
	return c.faster(t.Sub(c.start) - p.total)
}

// wall is when the model's clock shows, or will show, at.
func (c *clock) wall(at time.Duration) time.Time {
	p := c.pause.Load()
	for p != nil && at <= p.at { // what is due as a pause begins still happens before it
		p = p.before
	}
	t := c.start.Add(c.slower(at))
	if p != nil {
		t = t.Add(p.total)
	}
	return t
}

// stop makes the clock stand still for a while from now on. A pause that is
// under way is made longer.
func (c *clock) stop(length time.Duration) {
	for {
		before := c.pause.Load()
		now := time.Now()
		p := &pause{at: c.at(now), begin: now, length: length, total: length, before: before}
		if before != nil {
			p.total += before.total
			if rest := before.length - now.Sub(before.begin); rest > 0 {
				p.begin = now.Add(rest)
			}
		}
		if c.pause.CompareAndSwap(before, p) {
			return
		}
	}
}

// faster and slower convert without rounding at the speed of the wall clock.
func (c *clock) faster(d time.Duration) time.Duration {
	if c.speed == 1 {
		return d
	}
	return time.Duration(float64(d) * c.speed)
}

func (c *clock) slower(d time.Duration) time.Duration {
	if c.speed == 1 {
		return d
	}
	return time.Duration(float64(d) / c.speed)
}
