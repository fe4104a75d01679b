package sim

import (
	"sync/atomic"
	"time"
)

// A clock is the model's time. It may run faster than the wall clock, and it stops
// during a pause. Times are offsets from its start.
type clock struct {
	start time.Time
	speed float64
	pause atomic.Pointer[pause] // the latest; nil before the first
}

// A pause is a time in which the model's clock was stopped.
type pause struct {
	at     time.Duration // model time
	begin  time.Time     // wall-clock time
	length time.Duration
	total  time.Duration // length of this and all earlier pauses
	before *pause
}

func newClock(speed float64) *clock { return &clock{start: time.Now(), speed: speed} }

// at converts a wall-clock time to model time.
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

// wall converts a model time to wall-clock time.
func (c *clock) wall(at time.Duration) time.Time {
	p := c.pause.Load()
	for p != nil && at <= p.at { // an event due at the start of a pause happens before the pause
		p = p.before
	}
	t := c.start.Add(c.slower(at))
	if p != nil {
		t = t.Add(p.total)
	}
	return t
}

// stop stops the clock for the given time from now on. If the clock is already
// stopped, stop extends the pause.
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

// faster and slower convert between wall-clock and model durations. They are exact
// if the speed is 1.
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
