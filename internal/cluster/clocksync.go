package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

const (
	initialReadings = 16 // before a run; the best one counts
	moreReadings    = 3  // each time during a run
	clockInterval   = time.Second
)

// monitorAgents measures clock offsets during the run. It also sends commands regularly,
// because agents abandon a silent coordinator: the time between levels and the delivery of
// records may be long.
func (c *Coordinator) monitorAgents(ctx context.Context) {
	tick := time.NewTicker(clockInterval)
	defer tick.Stop()
	heard := time.Now()
	for {
		select {
		case <-tick.C:
			c.each(c.members(), func(m *member) { c.measureClock(ctx, m, moreReadings) })
			if time.Since(heard) > coordinatorTimeout/6 {
				heard = time.Now()
				c.each(c.members(), func(m *member) { _, _ = c.send(ctx, m, &command{Kind: cmdStatus}) }) // failed queries are repeated
			}
		case <-ctx.Done():
			return
		}
	}
}

// measureClock reads an agent's clock several times.
func (c *Coordinator) measureClock(ctx context.Context, m *member, times int) {
	m.mu.Lock()
	same := m.clock.same
	m.mu.Unlock()
	if same {
		return
	}
	for range times {
		r, err := c.readClock(ctx, &m.agentInfo)
		if err != nil {
			return // the next round tries again
		}
		m.mu.Lock()
		m.clock.add(r)
		m.mu.Unlock()
	}
}

func (c *Coordinator) readClock(ctx context.Context, agent *agentInfo) (r reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.sent = time.Now()
	answer, err := c.control.RequestWithContext(ctx, agent.clockSubject(), nil)
	r.received = time.Now()
	if err != nil {
		return r, err
	}
	if len(answer.Data) != 8 {
		return r, errors.New("the answer is not a time")
	}
	r.agent = time.Unix(0, int64(binary.BigEndian.Uint64(answer.Data)))
	return r, nil
}

// offset returns how far an agent's clock is ahead now, and the largest error.
func (m *member) offset() (offset, bound time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.now(time.Now())
}
