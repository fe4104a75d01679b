package cluster

import (
	"math"
	"os"
	"strings"
	"time"
)

// A reading is one comparison of an agent's clock with the coordinator's: the
// agent told its time between sent and received.
type reading struct {
	sent, received time.Time // by the coordinator's clock
	agent          time.Time // by the agent's
}

// offset is how far the agent's clock is ahead, and by how much that may be wrong
// at most: half the way there and back, whatever way took longer.
func (r *reading) offset() (offset, bound time.Duration) {
	trip := r.received.Sub(r.sent)
	return time.Duration(r.agent.UnixNano()-r.sent.UnixNano()) - trip/2, max(trip/2, 0)
}

// drift is how fast two clocks may part, as a share: what quartz does at worst
// before anybody disciplines it.
const drift = 100e-6

// A clock knows how far an agent's clock is ahead of the coordinator's, from the
// best of its readings: those that took the shortest way, and not long ago.
type clock struct {
	same   bool // it is the same clock: the same machine
	offset time.Duration
	bound  time.Duration // at most so wrong, at the time of at
	at     time.Time
}

// add takes a reading. It is better than what is known if its bound is smaller
// than what the old one's has grown to by now.
func (c *clock) add(r reading) {
	offset, bound := r.offset()
	if !c.at.IsZero() && c.boundAt(r.received) < bound {
		return
	}
	c.offset, c.bound, c.at = offset, bound, r.received
}

// boundAt is how wrong the offset may be at a time.
func (c *clock) boundAt(now time.Time) time.Duration {
	if c.same {
		return 0
	}
	if c.at.IsZero() {
		return math.MaxInt64
	}
	age := now.Sub(c.at)
	return c.bound + time.Duration(math.Abs(float64(age))*drift)
}

// now is what is known of the clock at a time.
func (c *clock) now(now time.Time) (offset, bound time.Duration) {
	if c.same {
		return 0, 0
	}
	return c.offset, c.boundAt(now)
}

// bootID names the start of this machine's kernel; empty where nobody tells.
// Processes that have the same have the same clock, in whatever container.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
