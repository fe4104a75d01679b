package transport

import (
	"runtime"
	"sync"
)

const (
	// manyStreams is the number of open streams above which each must be cheap.
	manyStreams = 512
	// veryManyStreams is the number of open streams above which each may keep hardly more
	// undecoded bytes than its connection holds anyway.
	veryManyStreams = 4096
)

// A workerPool runs Consumers on a few goroutines. Decoding needs a deep stack, and a
// stream that decodes on its own goroutine would keep the stack until its end. If
// thousands of streams end at once, a few decoding goroutines leave the CPUs to receiving.
type workerPool struct {
	mu          sync.Mutex
	first, last *task // queue
	free        *task
	working     int
}

// A task is one call of a Consumer.
type task struct {
	sink  Consumer
	data  []byte
	reads []Read
	err   error
	done  chan struct{}
	next  *task
}

// pooledConsumer runs a Consumer on the worker pool if many streams are open.
type pooledConsumer struct {
	Consumer
	client *Client
	h1Conn *h1Conn
}

// Consume implements Consumer.
func (m pooledConsumer) Consume(data []byte, reads []Read) error {
	if m.client.open.Load() < manyStreams {
		return m.Consumer.Consume(data, reads)
	}
	m.h1Conn.returnBuffer()
	return m.client.workers.consume(m.Consumer, data, reads)
}

// consume queues a call of sink and waits for its result.
func (c *workerPool) consume(sink Consumer, data []byte, reads []Read) error {
	c.mu.Lock()
	e := c.free
	if e == nil {
		e = &task{done: make(chan struct{}, 1)}
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
	*e = task{done: e.done, next: c.free}
	c.free = e
	c.mu.Unlock()
	return err
}

// work runs tasks until the queue is empty.
func (c *workerPool) work() {
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
