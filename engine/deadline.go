package engine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// deadlines makes the contexts of requests. All requests have the same timeout, so the
// oldest expires first and one timer is enough. Ten thousand requests may be open, and a
// context of the standard library takes a kilobyte.
type deadlines struct {
	parent  context.Context
	timeout time.Duration // 0 is none
	reason  error         // the error of an expired request

	mu               sync.Mutex
	oldest, youngest *deadline
	timer            *time.Timer // nil if not running
	unwatch          func() bool
}

func newDeadlines(parent context.Context, timeout time.Duration) *deadlines {
	ds := &deadlines{parent: parent, timeout: timeout, reason: context.DeadlineExceeded}
	ds.unwatch = context.AfterFunc(parent, func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		for ds.oldest != nil {
			ds.oldest.end(parent.Err())
		}
	})
	return ds
}

// close releases the resources when no request is open any more.
func (ds *deadlines) close() {
	ds.unwatch()
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.timer != nil {
		ds.timer.Stop()
	}
}

// begin starts the timeout.
func (d *deadline) begin() {
	ds := d.of
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d.err != nil {
		return
	}
	if ds.timeout > 0 {
		d.at = time.Now().Add(ds.timeout)
	}
	if d.begun = true; ds.youngest == nil {
		ds.oldest = d
	} else {
		d.older, ds.youngest.newer = ds.youngest, d
	}
	ds.youngest = d
	if ds.timeout > 0 && ds.timer == nil {
		ds.timer = time.AfterFunc(ds.timeout, ds.expire)
	}
	if err := ds.parent.Err(); err != nil { // the cancellation is not reported again
		d.end(err)
	}
}

// shorten limits the remaining time of all open requests, and the time of later ones. The requests keep their order.
func (ds *deadlines) shorten(most time.Duration, reason error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.timeout > 0 && ds.timeout <= most {
		return
	}
	ds.timeout, ds.reason = most, reason
	end := time.Now().Add(most)
	for d := ds.oldest; d != nil; d = d.newer {
		if d.at.IsZero() || d.at.After(end) {
			d.at = end
		}
	}
	if ds.timer != nil {
		ds.timer.Stop()
	}
	ds.timer = time.AfterFunc(0, ds.expire) // sets the timer of the oldest request
}

// expire ends the expired requests and sets the timer for the next.
func (ds *deadlines) expire() {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.timer = nil
	for ds.oldest != nil {
		if left := time.Until(ds.oldest.at); left > 0 {
			ds.timer = time.AfterFunc(left, ds.expire)
			return
		}
		ds.oldest.end(ds.reason)
	}
}

// A deadline is the context of one request. Its creator must call cancel. The channel of
// Done is created on demand, because AfterFunc is cheaper.
type deadline struct {
	of           *deadlines
	at           time.Time
	older, newer *deadline
	begun        bool
	err          error // reason of the end
	done         chan struct{}
	calls        []*func()
}

// end ends the context. The caller holds the lock.
func (d *deadline) end(err error) {
	if d.err != nil {
		return
	}
	d.err = err
	if d.done != nil {
		close(d.done)
	}
	for _, f := range d.calls {
		go (*f)()
	}
	d.calls = nil
	if d.begun {
		d.unlink()
	}
}

func (d *deadline) unlink() {
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		d.of.oldest = d.newer
	}
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		d.of.youngest = d.older
	}
	d.older, d.newer = nil, nil
}

// cancel ends the context after the request.
func (d *deadline) cancel() {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.end(context.Canceled)
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) {
	parent, ok := d.of.parent.Deadline()
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if d.at.IsZero() || ok && parent.Before(d.at) {
		return parent, ok
	}
	return d.at, true
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		if d.err != nil {
			close(d.done)
		}
	}
	return d.done
}

// Err implements context.Context. Err checks the parent, too, because the end of the parent
// is passed on later.
func (d *deadline) Err() error {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if err := d.of.parent.Err(); err != nil {
		d.end(err)
	}
	return d.err
}

// Value implements context.Context.
func (d *deadline) Value(key any) any { return d.of.parent.Value(key) }

// AfterFunc is the method that the context package prefers to Done.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if d.err != nil {
		go f()
		return func() bool { return false }
	}
	call := &f
	d.calls = append(d.calls, call)
	return func() bool {
		d.of.mu.Lock()
		defer d.of.mu.Unlock()
		i := slices.Index(d.calls, call)
		if i < 0 {
			return false
		}
		d.calls = slices.Delete(d.calls, i, i+1)
		return true
	}
}
