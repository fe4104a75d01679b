package cluster

import (
	"math"
	"os"
	"strings"
	"time"
)

// A reading is one comparison of two clocks: the agent reported its time between sent and
// received.
type reading struct {
	sent, received time.Time // by the coordinator's clock
	agent          time.Time // by the agent's clock
}

// offset returns how far the agent's clock is ahead, and the largest possible error: half of
// the round trip, however it divides into the two directions.
func (r *reading) offset() (offset, bound time.Duration) {
	trip := r.received.Sub(r.sent)
	return time.Duration(r.agent.UnixNano()-r.sent.UnixNano()) - trip/2, max(trip/2, 0)
}

// maxDrift is the largest relative difference in speed of two clocks. It is the worst case of
// undisciplined quartz.
const maxDrift = 100e-6

// A clock estimates how far an agent's clock is ahead of the coordinator's. It keeps the best
// reading, which has a short round trip and is recent.
type clock struct {
	same   bool // same machine, so same clock
	offset time.Duration
	bound  time.Duration // largest error at the time at
	at     time.Time
}

// add takes a reading if its bound is smaller than the bound of the kept reading, which grows
// with age.
func (c *clock) add(r reading) {
	offset, bound := r.offset()
	if !c.at.IsZero() && c.boundAt(r.received) < bound {
		return
	}
	c.offset, c.bound, c.at = offset, bound, r.received
}

// boundAt returns the largest error of the offset at a time.
func (c *clock) boundAt(now time.Time) time.Duration {
	if c.same {
		return 0
	}
	if c.at.IsZero() {
		return math.MaxInt64
	}
	age := now.Sub(c.at)
	return c.bound + time.Duration(math.Abs(float64(age))*maxDrift)
}

// now returns the offset and its largest error at a time.
func (c *clock) now(now time.Time) (offset, bound time.Duration) {
	if c.same {
		return 0, 0
	}
	return c.offset, c.boundAt(now)
}

// bootID identifies the boot of this machine's kernel, or is empty if unknown. Processes with
// the same boot id share a clock, also in different containers.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
