package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/priority"
)

const (
	// readyLeast and readyTime limit the time allowed for preparing one request of a burst,
	// and readyMost the time for a whole burst. Preparing takes 20 microseconds of CPU time,
	// but a busy machine does not always provide a CPU. So the time is readyRatio of the time
	// in which a request was encoded, which takes half as much CPU time.
	readyLeast = 20 * time.Microsecond
	readyTime  = 200 * time.Microsecond
	readyMost  = time.Second
	readyRatio = 3
	// requestsPerWriter is how many requests justify another writer thread.
	requestsPerWriter = 32
)

// A burst is a set of sessions due at the same time. Just before that time, each session
// runs up to the point of sending. Then a few threads write all requests, because waking a
// thousand goroutines takes as long as sending their requests.
type burst struct {
	runner    *runner
	lookahead *lookahead
	due       time.Duration
	size      int
	bytes     int64
	prepare   chan struct{} // closed when the sessions should prepare
	sent      chan struct{} // closed when all ready requests are sent

	mu    sync.Mutex
	ready []*burstRequest
	open  bool // the burst is due
	next  atomic.Int64
}

// newBurst returns an empty burst.
func (r *runner) newBurst(a *lookahead, due time.Duration) *burst {
	return &burst{runner: r, lookahead: a, due: due, prepare: make(chan struct{}), sent: make(chan struct{})}
}

// mayBurst reports whether sessions due at due can start without waiting for slots.
func (r *runner) mayBurst(due time.Duration) bool {
	return due != tacho.ASAP && r.Limit == 0 && !r.over(due)
}

// burstOf returns a burst of the session and all sessions due at the same time, or nil if
// there is no other.
func (r *runner) burstOf(a *lookahead, it *item) *burst {
	if !r.mayBurst(it.due) {
		return nil
	}
	second := a.at(it.due)
	if second == nil {
		return nil
	}
	b := r.newBurst(a, it.due)
	b.add(it)
	b.add(second)
	b.gather()
	return b
}

// gather adds the ready sessions due at the same time, without waiting for sessions in
// preparation.
func (b *burst) gather() {
	for ready := len(b.lookahead.items); ready >= 0; ready-- {
		it := b.lookahead.at(b.due)
		if it == nil {
			break
		}
		b.add(it)
	}
}

func (b *burst) add(it *item) {
	b.size++
	b.bytes += it.bytes
	r := b.runner
	r.sessions.Go(func() {
		<-b.prepare
		if it.state == nil {
			r.session(it, it.due, &burstRequest{burst: b})
			return
		}
		<-b.sent
		if slot := r.now(); r.mayStart(slot) {
			r.session(it, slot, nil)
		}
	})
}

func (r *runner) mayStart(slot time.Duration) bool {
	return r.arriving.Err() == nil && !r.over(slot)
}

// lead returns how long before its due time a burst prepares.
func (b *burst) lead() time.Duration {
	return min(readyMost, time.Duration(b.size)*min(readyTime, max(readyLeast, readyRatio*b.lookahead.each)))
}

// release sends all requests when they are due. If ctx is done before, no request is sent.
func (b *burst) release(ctx context.Context) error {
	due := b.runner.epoch.Add(b.due)
	err := sleeper{}.until(ctx, due.Add(-b.lead()))
	if err == nil {
		err = b.runner.hold(ctx)
	}
	close(b.prepare)
	var writers sync.WaitGroup
	for range min(b.size/requestsPerWriter, runtime.NumCPU()) {
		writers.Go(func() {
			if b.runner.Precise {
				runtime.LockOSThread() // never unlocked: the thread and its priority end with the goroutine
				priority.Ask()
			}
			_ = b.runner.sleeper.until(ctx, due) // if ctx is done, leave sends nothing
			b.send()
		})
	}
	if err == nil {
		err = b.runner.sleeper.until(ctx, due)
	}
	if b.size < requestsPerWriter {
		b.send()
	}
	writers.Wait()
	close(b.sent)
	b.ready = nil
	b.lookahead.release(b.bytes)
	return err
}

// send writes ready requests. Several goroutines call send concurrently.
func (b *burst) send() {
	b.mu.Lock()
	b.open = true
	b.mu.Unlock()
	for i := b.next.Add(1) - 1; i < int64(len(b.ready)); i = b.next.Add(1) - 1 {
		b.ready[i].leave()
	}
}

// A burstRequest is a request that waits for its burst. pass is its gate.
type burstRequest struct {
	burst    *burst
	rec      *tacho.Record
	deadline *deadline
	write    func()
	left     bool
	err      error // reason why the request was not sent
}

var errTooLate = errors.New("the stage sends no more requests")

// pass is a tacho.CallOptions.Gate.
func (p *burstRequest) pass(write func()) error {
	if p.left {
		write()
		return nil
	}
	b := p.burst
	p.write = write
	b.mu.Lock()
	late := b.open
	if !late {
		b.ready = append(b.ready, p)
	}
	b.mu.Unlock()
	if late {
		p.leave()
	} else {
		<-b.sent
	}
	p.deadline.begin()
	return p.err
}

// leave sends the request, unless the stage has ended.
func (p *burstRequest) leave() {
	r := p.burst.runner
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
