package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/session"
)

const (
	// horizon is how long before its due time a session is prepared: long enough to
	// bridge a garbage collection or a slow source, and short enough to spread the
	// preparation evenly over the run.
	horizon = 2 * time.Second
	// stride is how often the preparer looks for sessions to prepare. A wakeup for each
	// session would cost more than its preparation.
	stride = 50 * time.Millisecond
	// aheadBytes limits the memory of prepared sessions. A burst up to this size is
	// prepared completely before the clock starts. The rest is prepared during the run,
	// and its lateness shows as lag.
	aheadBytes = 1 << 30
	// aheadItems limits the number of prepared sessions of a schedule.
	aheadItems = 1 << 16
	// spareItems is how many sessions a closed loop prepares beyond its limit.
	spareItems = 64
)

// An item is a session whose first request is ready to be sent.
type item struct {
	request *tacho.Request // first request
	state   *session.State // nil if the session is a single turn
	call    tacho.Call
	due     time.Duration
	bytes   int64
	begun   bool // the session began before the stage
}

// lookahead is the queue of prepared sessions.
type lookahead struct {
	items   chan *item
	held    *item         // next item, after a peek
	primed  chan struct{} // closed when everything to prepare before the start is ready
	once    sync.Once
	limit   int
	mu      sync.Mutex
	room    *sync.Cond
	bytes   int64
	epoch   time.Time
	started chan struct{}

	began    time.Time
	prepared int
	each     time.Duration // mean time in which a session was prepared; set before primed is closed
}

func newLookahead(limit int) *lookahead {
	a := &lookahead{items: make(chan *item, aheadItems), primed: make(chan struct{}), started: make(chan struct{}), limit: limit}
	a.room = sync.NewCond(&a.mu)
	return a
}

// start tells the preparer when the clock started.
func (a *lookahead) start(epoch time.Time) {
	a.epoch = epoch
	close(a.started)
}

// prime lets the stage start.
func (a *lookahead) prime() {
	a.once.Do(func() {
		a.each = time.Since(a.began) / time.Duration(max(a.prepared, 1))
		close(a.primed)
	})
}

// fill prepares the sessions of the stage, in order, until they end.
func (a *lookahead) fill(ctx context.Context, s *Stage) error {
	defer close(a.items)
	defer a.prime()
	// A wait for room cannot watch ctx, so the cancellation must wake the wait.
	defer context.AfterFunc(ctx, func() { a.mu.Lock(); a.room.Broadcast(); a.mu.Unlock() })()
	a.began = time.Now()
	begun := 0
	for i, due := range s.Arrivals {
		if s.MaxTime > 0 && due >= s.MaxTime && begun >= s.Begun {
			return nil // do not wait for a session that will not be sent
		}
		if err := a.wait(ctx, due); err != nil {
			return err
		}
		it, err := prepare(s, i, due)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		it.begun = begun < s.Begun
		begun++
		a.prepared++
		if err := a.push(ctx, it); err != nil {
			return err
		}
	}
	return nil
}

func prepare(s *Stage, i uint64, due time.Duration) (*item, error) {
	sess, err := s.Source.Session(i)
	if err != nil {
		return nil, err
	}
	if len(sess.Turns) == 0 {
		return nil, fmt.Errorf("session %d has no turns", i)
	}
	var state *session.State
	if len(sess.Turns) > 1 {
		if state, err = session.New(&sess); err != nil {
			return nil, err
		}
	}
	q := &sess.Turns[0].Request
	q.Quote(nil)
	call, err := s.Backend.Prepare(q)
	if err != nil {
		return nil, fmt.Errorf("request %d: %w", i, err)
	}
	size := int64(len(q.Input.Text) + 8*len(q.Input.IDs))
	for _, m := range q.Input.Messages {
		size += int64(len(m.Content) + len(m.Raw))
	}
	if q.Input.Audio != nil {
		size += int64(len(q.Input.Audio.Data))
	}
	return &item{request: q, state: state, call: call, due: due, bytes: size}, nil
}

// wait blocks the preparer while enough is prepared.
func (a *lookahead) wait(ctx context.Context, due time.Duration) error {
	if due <= horizon { // also ASAP, which push limits
		return ctx.Err()
	}
	a.prime()
	select {
	case <-a.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	var sleeper sleeper
	return sleeper.until(ctx, a.epoch.Add((due-horizon).Truncate(stride)+stride))
}

func (a *lookahead) push(ctx context.Context, it *item) error {
	a.mu.Lock()
	for a.full(it) && ctx.Err() == nil {
		a.prime()
		a.room.Wait()
	}
	a.bytes += it.bytes
	a.mu.Unlock()
	select {
	case a.items <- it:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *lookahead) full(it *item) bool {
	if it.due == tacho.ASAP && len(a.items) >= a.limit+spareItems {
		return true
	}
	return len(a.items) >= aheadItems || a.bytes > 0 && a.bytes+it.bytes > aheadBytes
}

// next returns the next session to send, or false if there are no more or ctx is done.
func (a *lookahead) next(ctx context.Context) (*item, bool) {
	if it := a.held; it != nil {
		a.held = nil
		return it, true
	}
	select {
	case it, ok := <-a.items:
		return it, ok
	case <-ctx.Done():
		return nil, false
	}
}

// at returns the next session if it is ready and due at due, or nil.
func (a *lookahead) at(due time.Duration) (it *item) {
	if a.held == nil {
		select {
		case a.held = <-a.items: // nil if there are no more
		default:
		}
	}
	if a.held != nil && a.held.due == due {
		it, a.held = a.held, nil
	}
	return it
}

// release makes room for more.
func (a *lookahead) release(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes -= bytes
	a.room.Signal()
}
