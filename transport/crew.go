package transport

import (
	"runtime"
	"sync"
)

const (
	// crowded is how many streams are so many that each must be cheap.
	crowded = 512
	// multitude is how many are so many that what they could keep undecoded is
	// hardly more than what comes while a connection is held.
	multitude = 4096
)

// A crew hands what streams brought to their consumers, on a few goroutines of
// its own. To decode takes a deep stack: each stream that did so itself would
// hold one ever after. And when thousands of streams end at once, a few that
// decode leave the processors to those that receive.
type crew struct {
	mu          sync.Mutex
	first, last *errand // that wait
	free        *errand
	working     int
}

// An errand is a call of a consumer.
type errand struct {
	sink  Consumer
	data  []byte
	reads []Read
	err   error
	done  chan struct{}
	next  *errand
}

// A manned is a Consumer whose work the crew does where there is a crowd.
type manned struct {
	Consumer
	client *Client
	line   *line
}

// Consume implements Consumer.
func (m manned) Consume(data []byte, reads []Read) error {
	if m.client.open.Load() < crowded {
		return m.Consumer.Consume(data, reads)
	}
	m.line.giveBack()
	return m.client.crew.consume(m.Consumer, data, reads)
}

// consume has a consumer called, and waits for it.
func (c *crew) consume(sink Consumer, data []byte, reads []Read) error {
	c.mu.Lock()
	e := c.free
	if e == nil {
		e = &errand{done: make(chan struct{}, 1)}
	} else {
		c.free = e.next
	}
	e.sink, e.data, e.reads, e.next = sink, data, reads, nil
	if c.first == nil {
		c.first = e
	} else {
		c.last.next = e
	}
	c.last = e
	if c.working < runtime.NumCPU() {
		c.working++
		go c.work()
	}
	c.mu.Unlock()
	<-e.done
	err := e.err
	c.mu.Lock()
	*e = errand{done: e.done, next: c.free}
	c.free = e
	c.mu.Unlock()
	return err
}

// work runs errands until there are none.
func (c *crew) work() {
	for {
		c.mu.Lock()
		e := c.first
		if e == nil {
			c.working--
			c.mu.Unlock()
			return
		}
		c.first = e.next
		c.mu.Unlock()
		e.err = e.sink.Consume(e.data, e.reads)
		e.done <- struct{}{}
	}
}
