package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tacho/live"
	"tacho/metric"
	"tacho/run"
)

// work is an agent's share of one level.
type work struct {
	order  *order
	before *recalled // what an agent before this one did of the share; nil is nothing
	live   live.Feed
	began  atomic.Pointer[beginning]
	spool  *spool
	up     *uplink
	cancel context.CancelFunc // ends it at once
	stop   context.CancelFunc // ends the load; what is finished is handed over
	enough chan struct{}
	start  chan time.Time
	done   chan struct{}
	sum    live.Totals // of the beats so far

	dropped atomic.Bool // nobody wants it any more
	quits   atomic.Bool // the agent was stopped

	mu    sync.Mutex
	now   string // one of the states
	err   error
	asked bool // that it is enough
}

// A beginning is when a level began here, and how this machine has fared since.
type beginning struct {
	epoch time.Time
	fares func() *metric.Client
}

// prepare takes up a share of a level. It is called with the agent locked.
func (a *agent) prepare(o *order) error {
	if o.Task == nil || o.N < 1 || o.K < 0 || o.K >= o.N {
		return errors.New("the order has no share of a level")
	}
	if a.at(o) != nil {
		return nil // it was told before
	}
	if a.leaving {
		return errLeaving // nobody would hand it over
	}
	if a.try != o.Try {
		a.dropReady() // somebody else was gone, and the level is shared anew
	}
	if a.try != o.Try && a.busy() {
		return errors.New("it is busy with another level")
	}
	for _, target := range o.Task.Targets {
		if err := allowed(a.Allow, target); err != nil {
			return err
		}
	}
	s, err := newSpool(a.Spool, spoolAbout{o.Run, o.Try, o.Share}, a.Most)
	if err != nil {
		return err
	}
	s.answers = o.Heed
	w := &work{
		order: o, before: a.recalls.of(o), spool: s, up: &uplink{js: a.js, spool: s}, now: preparing,
		enough: make(chan struct{}), start: make(chan time.Time, 1), done: make(chan struct{}),
	}
	all, cancel := context.WithCancel(a.ctx)
	load, stop := context.WithCancel(all)
	w.cancel, w.stop = cancel, stop
	if a.try != o.Try || a.works == nil {
		a.try, a.works = o.Try, map[int]*work{}
	}
	a.works[o.Share] = w
	a.working.Go(func() { a.carryOut(all, load, w) })
	return nil
}

// dropReady lets go of shares that did not begin.
func (a *agent) dropReady() {
	for id, w := range a.works {
		if !w.hasBegun() {
			w.drop()
			delete(a.works, id)
		}
	}
}

// carryOut sends the share, and hands its records over.
func (a *agent) carryOut(ctx, load context.Context, w *work) {
	defer close(w.done)
	defer w.cancel()
	handed := make(chan error, 1)
	go func() { handed <- w.up.run(ctx) }()
	client, known, err := a.share(load, w)
	_ = w.spool.Close()
	left := load.Err() != nil && w.quits.Load()
	switch {
	case left:
		err = errLeft
	case load.Err() != nil && ctx.Err() == nil:
		err = nil // it was told to stop
	}
	w.set(ended, err)
	if bad := <-handed; bad != nil {
		a.notHanded(w, bad)
		return
	}
	spooled := w.spool.state(w.up.handed.Load())
	last := farewell{Client: client, Known: known, Lost: spooled.lost, Waiting: spooled.peak}
	if spooled.wasFull != nil {
		last.Full = spooled.wasFull.Error()
	}
	if last.Left = left; err != nil && !left {
		last.Error = err.Error()
	}
	if bad := w.up.farewell(ctx, last); bad != nil {
		a.notHanded(w, bad)
		return
	}
	_ = w.spool.remove() // it is handed over; the next start of an agent finds what is left
}

// notHanded says what becomes of records that were not handed over.
func (a *agent) notHanded(w *work, err error) {
	w.set(failed, err)
	if w.dropped.Load() {
		_ = w.spool.remove() // nobody wants it
		return
	}
	a.Say(fmt.Sprintf("Records that were not handed over stay in %s: an agent that is started with this --spool hands them over.", w.spool.dir))
}

var errLeft = errors.New("the agent was stopped")

// quit ends the load, for the agent is stopped. Requests that are cut off are not
// finished, and so not on record: another agent may send them.
func (w *work) quit() {
	w.quits.Store(true)
	w.spool.dropCanceled()
	w.stop()
}

// drop ends it, for nobody wants it any more.
func (w *work) drop() {
	w.dropped.Store(true)
	w.cancel()
}

// hasBegun says whether the clock of the level has started here.
func (w *work) hasBegun() bool {
	s := w.state().State
	return s != preparing && s != ready
}

// share opens the servers if that was not done yet, and sends the share.
func (a *agent) share(ctx context.Context, w *work) (*metric.Client, []metric.Reason, error) {
	r, done, err := a.open(ctx, w.order.Task)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	r.Enough = w.enough
	part := run.Share{
		K: w.order.K, N: w.order.N, Live: &w.live, Start: w.waitForStart,
		Begin: func(epoch time.Time, fares func() *metric.Client) { w.began.Store(&beginning{epoch, fares}) },
	}
	if before := w.before; before != nil {
		part.Begun, part.Now = before.begun(), before.now
		part.Skip = func(i uint64) bool { return before.skip[i] }
	}
	return r.Share(ctx, w.order.Task, part, w.spool)
}

// open opens the servers of a task. Those of the level before stay open where
// the next has the same. A second share of a level has its own.
func (a *agent) open(ctx context.Context, t *run.Task) (*run.Runner, func(), error) {
	if r := a.reuse(t); r != nil {
		return r, a.handBack, nil
	}
	r, err := run.OpenTask(ctx, t, a.Env(), run.Hooks{Say: a.Say})
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inUse || a.run == "" {
		return r, r.Close, nil
	}
	if a.runner != nil {
		a.runner.Close()
	}
	a.runner, a.opened, a.inUse = r, t, true
	return r, a.handBack, nil
}

// reuse is the runner of the level before, if it fits and is free.
func (a *agent) reuse(t *run.Task) *run.Runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runner == nil || a.inUse || !t.Fits(a.opened) {
		return nil
	}
	a.inUse = true
	return a.runner
}

func (a *agent) handBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inUse = false
}

// waitForStart says that all is ready, and waits for the instant.
func (w *work) waitForStart(ctx context.Context) (time.Time, error) {
	w.set(ready, nil)
	select {
	case at := <-w.start:
		w.set(running, nil)
		return at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// tell passes an order on to the level.
func (w *work) tell(o *order) error {
	switch o.Kind {
	case begin:
		select {
		case w.start <- monotonic(o.Start):
		default: // it was told before
		}
	case sendNoMore:
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.asked {
			w.asked = true
			close(w.enough)
		}
	case stop:
		w.stop()
	default:
		return fmt.Errorf("no order is called %q", o.Kind)
	}
	return nil
}

// monotonic is a time of the wall clock, in nanoseconds since 1970, on the monotonic
// clock of this process. A schedule that counts from it is not moved if the wall clock
// is set later.
func monotonic(wall int64) time.Time {
	now := time.Now()
	return now.Add(time.Duration(wall - now.UnixNano()))
}

func (w *work) set(now string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now = now; err != nil {
		w.now, w.err = failed, err
	}
}

func (w *work) state() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := state{State: w.now}
	if w.err != nil {
		var usage *run.UsageError
		s.Error, s.Usage = w.err.Error(), errors.As(w.err, &usage)
	}
	return s
}

// idle says whether nothing of the level is left to do.
func (w *work) idle() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *work) beat(agent string) beat {
	spooled := w.spool.state(w.up.handed.Load())
	b := beat{Agent: agent, Try: w.order.Try, Share: w.order.Share, Waiting: spooled.waiting}
	if began := w.began.Load(); began != nil {
		b.Tick = w.live.Tick(time.Since(began.epoch))
		if !w.idle() {
			b.Tick.Client = began.fares()
		}
		w.sum = w.sum.Plus(b.Tick.Totals)
	}
	b.Totals = w.sum
	if spooled.full != nil {
		b.Full = spooled.full.Error()
	}
	return b
}
