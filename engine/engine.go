// Package engine runs one stage: sessions from a Source, at the times of a
// schedule, through a Backend, into a Sink. It knows them by their interfaces
// alone.
//
// Four kinds of goroutine share the work. One prepares: it asks the source
// for sessions and has their first requests encoded, some time before they
// are due. One dispatches: it waits for each due time, then for a free slot,
// and starts the session. Each session runs in one of its own; but where a request
// is all of it and nothing waits for the answer, the dispatcher sends it, and the
// answer has a goroutine once it has come. And one drains the finished records
// into the sink, so that no sink needs a lock and no request waits for a disk.
package engine

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync/atomic"
	"time"

	"tacho"
)

// A Stage is one experiment with fixed load.
type Stage struct {
	Index    int
	Arrivals iter.Seq2[uint64, time.Duration] // session number, due
	Limit    int                              // most requests in flight, and of a closed loop most sessions under way; 0 is no limit
	Source   tacho.Source
	Backend  tacho.Backend
	Timeout  time.Duration         // for one request, from its start; 0 is none
	Start    Start                 // says when the clock is to start, and is asked when the first requests are ready; nil is at once
	MaxTime  time.Duration         // no session starts later than this; 0 is no limit
	Begun    int                   // so many of the first arrivals are sessions that began before, whatever MaxTime says
	Enough   <-chan struct{}       // once closed, no request is sent any more; what is in flight is let finish; may be nil
	Begin    func(epoch time.Time) // told when the clock starts, before anything is sent; may be nil
	Live     *Live                 // counts while it runs; may be nil
	Count    func(text string) int // tokens of an answer that a later turn quotes; nil takes the server's word
	Precise  bool                  // sleep by the system's timers: finer than the runtime's, but blind to fake time
}

// A Start says when the clock is to start. It may wait for others to be ready.
type Start func(ctx context.Context) (time.Time, error)

// flurry is how soon after another a session starts that is one of many.
const flurry = 50 * time.Microsecond

// Live is what is known while a stage runs.
type Live struct {
	Started, Finished, Failed, Tokens atomic.Int64
	Sessions                          atomic.Int64 // that are over
}

// Run runs the stage to its end, or until ctx is done, and emits one Record
// for each request to sink. It returns when the last response is in; a stage
// that was stopped returns ctx's error, after the records of what it cut off.
func Run(ctx context.Context, s Stage, sink tacho.Sink) error {
	if s.Live == nil {
		s.Live = &Live{}
	}
	prepareCtx, stop := context.WithCancel(ctx)
	defer stop()
	ahead := newAhead(s.Limit)
	prepared := make(chan error, 1)
	go func() { prepared <- ahead.fill(prepareCtx, &s) }()
	select {
	case <-ahead.primed:
	case <-ctx.Done():
	}

	r := &runner{Stage: s, nap: nap{s.Precise}, records: make(chan *tacho.Record, 4096), slots: newSlots(s.Limit), deadlines: newDeadlines(ctx, s.Timeout)}
	defer r.deadlines.close()
	r.arriving, r.enough = context.WithCancel(ctx)
	defer r.enough()
	go func() {
		select {
		case <-s.Enough:
			r.enough()
		case <-r.arriving.Done():
		}
	}()
	drained, over := make(chan error, 1), make(chan struct{})
	go func() { drained <- drain(r.records, over, s.Live, sink) }()
	err := r.begin(ctx, r.arriving, ahead)
	if err == nil {
		err = r.dispatch(ctx, r.arriving, ahead)
	}
	stop()
	r.sessions.Wait()
	close(over)
	close(r.records)
	return errors.Join(err, ignoreCancel(<-prepared), <-drained)
}

// begin waits for the start of the clock, which may come from outside so that
// several machines begin at one instant. A start that has passed is kept: the
// requests that were due since then are late, and are counted so. What is due at
// once is on its mark before, and garbage is collected.
func (r *runner) begin(ctx, arriving context.Context, a *ahead) error {
	if r.Precise {
		runtime.GC()
	}
	first := r.crowd(a, 0)
	if r.gathers(0) {
		first.gather() //nolint:contextcheck // as below
	}
	var err error
	if r.epoch = time.Now().Add(first.lead()); r.Start != nil {
		r.epoch, err = r.Start(ctx)
	}
	if err == nil {
		err = nap{}.until(ctx, r.epoch.Add(-first.lead()))
	}
	if err != nil {
		r.enough()
	} else {
		a.start(r.epoch)
		if r.Begin != nil {
			r.Begin(r.epoch)
		}
	}
	_ = first.release(arriving) // dispatch will tell
	return err
}

// ignoreCancel drops the complaint of a preparer that was told to stop: the
// dispatcher tells why.
func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// restTime is how long drain rests after it had all that there was: to wake up
// for each record costs more than the record does.
const restTime = 40 * time.Millisecond

// drainMost is how many records the sink is given at a time, at most.
const drainMost = 256

// drain is the only goroutine that touches sink. It reads to the end even if
// the sink fails, so that no request ever waits for a reader. It does not rest
// any more once over is closed.
func drain(records <-chan *tacho.Record, over <-chan struct{}, live *Live, sink tacho.Sink) (first error) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	batch := make([]*tacho.Record, 0, drainMost)
	for r := range records {
		batch = append(batch, r)
		for len(records) > 0 && len(batch) < drainMost {
			batch = append(batch, <-records)
		}
		live.Finished.Add(int64(len(batch)))
		for _, r := range batch {
			if !r.OK() {
				live.Failed.Add(1)
			}
		}
		if err := AddAll(sink, batch); err != nil && first == nil {
			first = err
		}
		clear(batch)
		batch = batch[:0]
		if len(records) == 0 {
			rest.Reset(restTime)
			select {
			case <-rest.C:
			case <-over:
			}
		}
	}
	return first
}

type runner struct {
	Stage
	nap       nap
	epoch     time.Time
	arriving  context.Context // over when no more requests are to be sent
	enough    func()          // ends it
	records   chan *tacho.Record
	sessions  staff
	deadlines *deadlines
	slots     slots // one for each request in flight; nobody waits for anything else with one in hand
}

// dispatch starts each session when it is due, or as soon after as the limit
// allows; the plan's own due time is kept, so the wait is counted. Due times
// are absolute: whatever a session costs, the next one is not late for it. A
// closed loop also counts sessions: it has as many users as its limit, and one
// who thinks between two turns does not make room for another.
func (r *runner) dispatch(ctx, arriving context.Context, a *ahead) error {
	users := newSlots(r.Limit)
	before := -2 * flurry // when the session before started
	for {
		it, ok := a.next(arriving)
		if !ok {
			return ctx.Err()
		}
		if r.late(it, it.due) {
			return nil
		}
		if c := r.crowdOf(a, it); c != nil { //nolint:contextcheck // as below
			if c.release(arriving) != nil {
				return ctx.Err()
			}
			continue
		}
		a.release(it.bytes)
		// What was cut off may have given its slot back before arriving was over.
		if r.turn(arriving, it, users) != nil || r.slots.take(arriving) != nil || ctx.Err() != nil {
			return ctx.Err()
		}
		slot := r.now()
		if r.Limit > 0 && r.late(it, slot) {
			return nil // without a limit, a session that was due in time is sent, however late
		}
		var user slots // that is given back
		if it.due == tacho.ASAP {
			it.due, user = slot, users
		}
		r.launch(it, slot, slot-before > flurry, user) //nolint:contextcheck // each request has its own, by r.deadlines
		before = slot
	}
}

// launch starts a session. It goes first, here and now: woken on another thread it
// would leave some fifty microseconds later. Of many that are due at once, each would
// have to wait for those before it: they go on all threads.
func (r *runner) launch(it *item, slot time.Duration, alone bool, user slots) {
	if alone && r.sendHere(it, slot) {
		return
	}
	r.sessions.Go(func() {
		defer user.give()
		r.session(it, slot, nil)
	})
	if alone {
		runtime.Gosched()
	}
}

// turn waits until a session may start, but for the slot of its request.
func (r *runner) turn(arriving context.Context, it *item, users slots) error {
	if it.due == tacho.ASAP {
		return users.take(arriving)
	}
	return r.nap.until(arriving, r.epoch.Add(it.due))
}

// late says whether the time for new sessions is over.
func (r *runner) late(it *item, t time.Duration) bool { return !it.begun && r.over(t) }

func (r *runner) over(t time.Duration) bool { return r.MaxTime > 0 && t >= r.MaxTime }

// now is the offset from the epoch on the wall clock, as the kernel's receive
// times are.
func (r *runner) now() time.Duration {
	return time.Duration(time.Now().UnixNano() - r.epoch.UnixNano())
}

// do makes a call. at is nil where it is due. In an open loop nothing waits for the
// end of an answer, unless another turn follows.
func (r *runner) do(call tacho.Call, rec *tacho.Record, at *place) {
	ctx := &deadline{of: r.deadlines}
	defer ctx.cancel()
	o := tacho.CallOptions{Unhurried: r.slots == nil && rec.Turns == 0}
	if at != nil {
		at.rec, at.deadline, o.Gate = rec, ctx, at.pass
	} else {
		ctx.begin()
		r.start(rec)
	}
	call.Do(ctx, r.epoch, rec, o)
	if rec.End == tacho.Never {
		rec.End = r.now()
	}
}

// start notes that a request is handed to the transport.
func (r *runner) start(rec *tacho.Record) {
	r.Live.Started.Add(1)
	rec.Start = r.now()
}

func unsent(stage int, q *tacho.Request, due time.Duration, err error) *tacho.Record {
	rec := tacho.NewRecord(stage, q, due)
	rec.End = due
	rec.Failure = &tacho.Failure{Cause: tacho.Unsent, Message: err.Error()}
	return rec
}

// slots is a counting semaphore; nil has no limit.
type slots chan struct{}

func newSlots(n int) slots {
	if n == 0 {
		return nil
	}
	return make(slots, n)
}

func (s slots) take(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slots) give() {
	if s != nil {
		<-s
	}
}
