package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tacho"
	"tacho/session"
)

const (
	// horizon is how long before it is due a session is prepared. It is long
	// enough to ride out a collection or a slow source, and short enough that
	// preparing is spread evenly over the run.
	horizon = 2 * time.Second
	// stride is how often it is looked for what is to be prepared: to wake up
	// for each session costs more than to prepare it.
	stride = 50 * time.Millisecond
	// aheadBytes is how much may wait prepared. A burst is prepared whole
	// before the clock starts, up to this; what does not fit is prepared while
	// the rest runs, and its lateness shows as lag.
	aheadBytes = 1 << 30
	// aheadItems bounds the queue of sessions of a schedule.
	aheadItems = 1 << 16
	// spareItems is how many sessions a closed loop prepares beyond its limit.
	spareItems = 64
)

// An item is a session whose first request is ready to leave.
type item struct {
	request *tacho.Request // the first
	talk    *session.State // nil of a session of one turn
	call    tacho.Call
	due     time.Duration
	bytes   int64
	begun   bool // before the stage was
}

// ahead is the queue between preparing and sending.
type ahead struct {
	items   chan *item
	held    *item         // the next one, where somebody has looked at it
	primed  chan struct{} // closed when all that should be ready before the start is
	once    sync.Once
	limit   int
	mu      sync.Mutex
	room    *sync.Cond
	bytes   int64
	epoch   time.Time
	started chan struct{}
}

func newAhead(limit int) *ahead {
	a := &ahead{items: make(chan *item, aheadItems), primed: make(chan struct{}), started: make(chan struct{}), limit: limit}
	a.room = sync.NewCond(&a.mu)
	return a
}

// start tells the preparer when the clock began.
func (a *ahead) start(epoch time.Time) {
	a.epoch = epoch
	close(a.started)
}

func (a *ahead) prime() { a.once.Do(func() { close(a.primed) }) }

// fill prepares the sessions of the stage, in order, until they end.
func (a *ahead) fill(ctx context.Context, s *Stage) error {
	defer close(a.items)
	defer a.prime()
	// A wait for room cannot watch ctx: whoever cancels must wake it.
	defer context.AfterFunc(ctx, func() { a.mu.Lock(); a.room.Broadcast(); a.mu.Unlock() })()
	begun := 0
	for i, due := range s.Arrivals {
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
	var talk *session.State
	if len(sess.Turns) > 1 {
		if talk, err = session.New(&sess); err != nil {
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
	return &item{request: q, talk: talk, call: call, due: due, bytes: size}, nil
}

// wait holds the preparer back while it is far enough ahead.
func (a *ahead) wait(ctx context.Context, due time.Duration) error {
	if due <= horizon { // and so is ASAP, which push holds back
		return ctx.Err()
	}
	a.prime()
	select {
	case <-a.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	var nap nap
	return nap.until(ctx, a.epoch.Add((due-horizon).Truncate(stride)+stride))
}

func (a *ahead) push(ctx context.Context, it *item) error {
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

func (a *ahead) full(it *item) bool {
	if it.due == tacho.ASAP && len(a.items) >= a.limit+spareItems {
		return true
	}
	return len(a.items) >= aheadItems || a.bytes > 0 && a.bytes+it.bytes > aheadBytes
}

// next is the next session to send; false when there are no more, or ctx is
// done.
func (a *ahead) next(ctx context.Context) (*item, bool) {
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

// at is the next session if it is ready and due at a time; nil if not.
func (a *ahead) at(due time.Duration) (it *item) {
	if a.held == nil {
		select {
		case a.held = <-a.items: // nil where there are no more
		default:
		}
	}
	if a.held != nil && a.held.due == due {
		it, a.held = a.held, nil
	}
	return it
}

// release makes room for more.
func (a *ahead) release(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes -= bytes
	a.room.Signal()
}
