package cluster

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"time"
)

// maxDrift is the largest relative difference in speed of two clocks. It is the worst case of undisciplined quartz.
const maxDrift = 100e-6

// A clock estimates how far an agent's clock is ahead of the coordinator's. It keeps the best reading, which has a short
// round trip and is recent.
type clock struct {
	same   bool // same machine, so same clock
	offset time.Duration
	bound  time.Duration // largest error at the time at
	at     time.Time
}

// add takes a reading: the agent reported its time between sent and received. The error is at most half of the round
// trip, however it divides into the two directions. The kept reading is replaced if its bound, which grows with age, is
// larger.
func (c *clock) add(sent, received, agent time.Time) {
	trip := received.Sub(sent)
	if _, bound := c.now(received); bound >= trip/2 {
		c.offset, c.bound, c.at = time.Duration(agent.UnixNano()-sent.UnixNano())-trip/2, max(trip/2, 0), received
	}
}

// now returns the offset and its largest error at a time.
func (c *clock) now(now time.Time) (offset, bound time.Duration) {
	switch {
	case c.same:
		return 0, 0
	case c.at.IsZero():
		return 0, math.MaxInt64
	}
	return c.offset, c.bound + time.Duration(math.Abs(float64(now.Sub(c.at)))*maxDrift)
}

// bootID identifies the boot of this machine's kernel, or is empty if unknown. Processes with the same boot id share a
// clock, also in different containers.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // other systems have no such file
	return strings.TrimSpace(string(text))
}

const (
	initialReadings = 16 // before a run; the best one counts
	moreReadings    = 3  // each time during a run
	clockInterval   = time.Second
)

// monitorClocks measures clock offsets during the run.
func (c *Coordinator) monitorClocks(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, clockInterval) {
		each(c.members(), func(m *member) { c.measureClock(ctx, m, moreReadings) })
	}
}

// measureClock reads an agent's clock several times. After an error, the next round tries again.
func (c *Coordinator) measureClock(ctx context.Context, m *member, times int) {
	for range times {
		if _, bound := m.offset(); bound == 0 || !c.readClock(ctx, m) {
			return
		}
	}
}

func (c *Coordinator) readClock(ctx context.Context, m *member) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent := time.Now()
	answer, err := c.control.RequestWithContext(ctx, m.clockSubject(), nil)
	received := time.Now()
	if err != nil || len(answer.Data) != 8 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.add(sent, received, time.Unix(0, int64(binary.BigEndian.Uint64(answer.Data))))
	return true
}

// offset returns how far an agent's clock is ahead now, and the largest error.
func (m *member) offset() (offset, bound time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.now(time.Now())
}
