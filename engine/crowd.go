package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tacho"
	"tacho/internal/haste"
)

const (
	// readyTime is how long it may take to make a request ready to leave, and
	// readyMost how long that of all of a crowd may. It takes 20 microseconds of a
	// processor; but a busy machine does not always give us one.
	readyTime = 200 * time.Microsecond
	readyMost = time.Second
	// share is how many requests are worth a thread to write them.
	share = 32
)

// A crowd is sessions that are due at one time. A moment before each goes as far
// as it can without sending anything. All that is left to do at that time is to
// write, which a few threads do for all of them: to wake each of a thousand
// takes as long as to send its request.
type crowd struct {
	runner *runner
	ahead  *ahead
	due    time.Duration
	size   int
	bytes  int64
	marks  chan struct{} // closed when they are to make ready
	sent   chan struct{} // closed when all that were ready have left

	mu    sync.Mutex
	ready []*place
	open  bool // it is due
	next  atomic.Int64
}

// crowd makes one without anybody in it.
func (r *runner) crowd(a *ahead, due time.Duration) *crowd {
	return &crowd{runner: r, ahead: a, due: due, marks: make(chan struct{}), sent: make(chan struct{})}
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
	c := r.crowd(a, it.due)
	c.add(it)
	c.add(second)
	c.gather()
	return c
}

// gather adds the sessions that are due then and are ready: it does not wait for
// what is being prepared.
func (c *crowd) gather() {
	for ready := len(c.ahead.items); ready >= 0; ready-- {
		it := c.ahead.at(c.due)
		if it == nil {
			break
		}
		c.add(it)
	}
}

func (c *crowd) add(it *item) {
	c.size++
	c.bytes += it.bytes
	r := c.runner
	r.sessions.Go(func() {
		<-c.marks
		if it.talk == nil {
			r.session(it, it.due, &place{crowd: c})
			return
		}
		<-c.sent
		if slot := r.now(); r.mayStart(slot) {
			r.session(it, slot, nil)
		}
	})
}

func (r *runner) mayStart(slot time.Duration) bool {
	return r.arriving.Err() == nil && !r.over(slot)
}

// lead is how long before it is due a crowd makes ready.
func (c *crowd) lead() time.Duration {
	return min(readyMost, time.Duration(c.size)*readyTime)
}

// release has all of them go when they are due, or when ctx is done, and then
// none of them does.
func (c *crowd) release(ctx context.Context) error {
	due := c.runner.epoch.Add(c.due)
	err := nap{}.until(ctx, due.Add(-c.lead()))
	close(c.marks)
	var writers sync.WaitGroup
	for range min(c.size/share, runtime.NumCPU()) {
		writers.Go(func() {
			if c.runner.Precise {
				runtime.LockOSThread() // for good: the thread ends with its goroutine, and its priority with it
				haste.Ask()
			}
			_ = c.runner.nap.until(ctx, due) // or nobody sends
			c.send()
		})
	}
	if err == nil {
		err = c.runner.nap.until(ctx, due)
	}
	if c.size < share {
		c.send()
	}
	writers.Wait()
	close(c.sent)
	c.ready = nil
	c.ahead.release(c.bytes)
	return err
}

// send writes what is ready, together with others that do.
func (c *crowd) send() {
	c.mu.Lock()
	c.open = true
	c.mu.Unlock()
	for i := c.next.Add(1) - 1; i < int64(len(c.ready)); i = c.next.Add(1) - 1 {
		c.ready[i].leave()
	}
}

// A place is where a request of a crowd waits; pass is its gate.
type place struct {
	crowd    *crowd
	rec      *tacho.Record
	deadline *deadline
	write    func()
	left     bool
	err      error // why it is not sent
}

var errTooLate = errors.New("no more requests are to be sent")

// pass is a tacho.CallOptions.Gate.
func (p *place) pass(write func()) error {
	if p.left {
		write()
		return nil
	}
	c := p.crowd
	p.write = write
	c.mu.Lock()
	late := c.open
	if !late {
		c.ready = append(c.ready, p)
	}
	c.mu.Unlock()
	if late {
		p.leave()
	} else {
		<-c.sent
	}
	p.deadline.begin()
	return p.err
}

// leave sends the request, unless it is too late for that.
func (p *place) leave() {
	r := p.crowd.runner
	slot := r.now()
	if !r.mayStart(slot) {
		p.err = errTooLate
		return
	}
	p.left = true
	p.rec.Slot = slot
	r.start(p.rec)
	p.write()
	p.write = nil
}
