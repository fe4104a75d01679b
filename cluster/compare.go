package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

const (
	firstReadings = 16 // before a run: the best of so many
	moreReadings  = 3  // each time while it goes on
	compareEvery  = time.Second
)

// watch compares the clocks while the run goes on, and lets agents hear that
// somebody leads it: levels may be far apart, and records take long to hand over.
func (c *Coordinator) watch(ctx context.Context) {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	heard := time.Now()
	for {
		select {
		case <-tick.C:
			c.each(c.members(), func(m *member) { c.compare(ctx, m, moreReadings) })
			if time.Since(heard) > patience/6 {
				heard = time.Now()
				c.each(c.members(), func(m *member) { _, _ = c.tell(ctx, m, &order{Kind: ask}) }) // whoever does not answer is asked again
			}
		case <-ctx.Done():
			return
		}
	}
}

// compare reads an agent's clock some times.
func (c *Coordinator) compare(ctx context.Context, m *member, times int) {
	m.mu.Lock()
	same := m.clock.same
	m.mu.Unlock()
	if same {
		return
	}
	for range times {
		r, err := c.readClock(ctx, m.ID)
		if err != nil {
			return // it is asked again
		}
		m.mu.Lock()
		m.clock.add(r)
		m.mu.Unlock()
	}
}

func (c *Coordinator) readClock(ctx context.Context, agent string) (r reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r.sent = time.Now()
	answer, err := c.control.RequestWithContext(ctx, clockSubject(agent), nil)
	r.received = time.Now()
	if err != nil {
		return r, err
	}
	if len(answer.Data) != 8 {
		return r, errors.New("this is no time")
	}
	r.agent = time.Unix(0, int64(binary.BigEndian.Uint64(answer.Data)))
	return r, nil
}

// offset is how far an agent's clock is ahead now, and by how much that may be
// wrong.
func (m *member) offset() (offset, bound time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.now(time.Now())
}
