// Package engine runs one stage: sessions from a Source, at the times of a schedule,
// through a Backend, into a Sink. The package depends on their interfaces only.
//
// Four kinds of goroutines share the work. The preparer gets sessions from the source
// and encodes their first requests some time before they are due. The dispatcher waits
// for each due time, then for a free slot, and starts the session. Each session runs on
// its own goroutine. But if a session is a single request and nothing waits for the
// response, the dispatcher sends the request, and the response gets a goroutine on
// arrival. The drainer moves finished records into the sink, so that sinks need no lock
// and requests do not wait for a disk.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
)

// Stage is one experiment with fixed load.
type Stage struct {
	Index    int
	Arrivals iter.Seq2[uint64, time.Duration] // session number and due time
	Limit    int                              // maximum requests in flight, and in a closed loop maximum sessions in progress; 0 is no limit
	Source   tacho.Source
	Backend  tacho.Backend
	Timeout  time.Duration               // of one request, from its start; 0 is none
	Grace    time.Duration               // of requests in flight when MaxTime or Enough ends the sending; 0 is Timeout
	Start    Start                       // returns the start of the clock, called when the first requests are ready; nil starts immediately
	MaxTime  time.Duration               // latest start of a session; 0 is no limit
	Begun    int                         // number of first arrivals that began before the stage, regardless of MaxTime
	Enough   <-chan struct{}             // once closed, no more requests are sent, and those in flight finish; may be nil
	Hold     func(context.Context) error // waits while no request may be sent; may be nil
	Begin    func(epoch time.Time)       // called when the clock starts, before anything is sent; may be nil
	Live     *Live                       // counters during the run; may be nil
	Count    func(text string) int       // counts tokens of a response that a later turn quotes; nil uses the server's count
	Precise  bool                        // sleep with the system's timers, which are more precise than the runtime's but ignore fake time
}

// Start returns the time at which the clock starts. Start may wait until other machines are
// ready.
type Start func(ctx context.Context) (time.Time, error)

// burstGap is the longest gap between sessions of a burst.
const burstGap = 50 * time.Microsecond

// Live holds counters during a stage.
type Live struct {
	Started, Finished, Failed, Tokens atomic.Int64
	Sessions                          atomic.Int64 // finished sessions
}

// Run runs the stage to its end, or until ctx is done, and emits one Record per request to
// sink. It returns after the last response. If ctx stopped the stage, Run returns the
// error of ctx, after the records of the requests it cancelled.
func Run(ctx context.Context, s Stage, sink tacho.Sink) error {
	if s.Live == nil {
		s.Live = &Live{}
	}
	prepareCtx, stop := context.WithCancel(ctx)
	defer stop()
	lookahead := newLookahead(s.Limit)
	prepared := make(chan error, 1)
	go func() { prepared <- lookahead.fill(prepareCtx, &s) }()
	select {
	case <-lookahead.primed:
	case <-ctx.Done():
	}

	r := &runner{Stage: s, sleeper: sleeper{s.Precise}, records: make(chan *tacho.Record, 4096), slots: newSlots(s.Limit), deadlines: newDeadlines(ctx, s.Timeout)}
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
	err := r.begin(ctx, r.arriving, lookahead)
	defer r.limitRest()()
	if err == nil {
		err = r.dispatch(ctx, r.arriving, lookahead)
	}
	stop()
	r.sessions.Wait()
	close(over)
	close(r.records)
	return errors.Join(err, ignoreCancel(<-prepared), <-drained)
}

// limitRest limits the time of requests in flight when the sending ends early, because one answer that never ends would
// hold the stage. stop ends the watch.
func (r *runner) limitRest() (stop func()) {
	if r.Grace == 0 {
		return func() {}
	}
	reason := fmt.Errorf("no complete answer %v after the end of sending, set --request-timeout to wait longer: %w", r.Grace, context.DeadlineExceeded)
	over := make(chan struct{})
	go func() {
		var late <-chan time.Time
		if r.MaxTime > 0 {
			late = time.After(time.Until(r.epoch.Add(r.MaxTime)))
		}
		select {
		case <-late:
		case <-r.Enough:
		case <-over:
			return
		}
		r.deadlines.shorten(r.Grace, reason)
	}()
	return func() { close(over) }
}

// begin waits for the start of the clock, which may come from outside so that several
// machines start at the same time. A start in the past still counts: requests due
// since then are recorded as late. Sessions due at the start are prepared before, and
// garbage is collected.
func (r *runner) begin(ctx, arriving context.Context, a *lookahead) error {
	if r.Precise {
		runtime.GC()
	}
	first := r.newBurst(a, 0)
	if r.mayBurst(0) {
		first.gather() //nolint:contextcheck // as below
	}
	var err error
	if r.epoch = time.Now().Add(first.lead()); r.Start != nil {
		r.epoch, err = r.Start(ctx)
	}
	if err == nil {
		err = sleeper{}.until(ctx, r.epoch.Add(-first.lead()))
	}
	if err != nil {
		r.enough()
	} else {
		a.start(r.epoch)
		if r.Begin != nil {
			r.Begin(r.epoch)
		}
	}
	_ = first.release(arriving) // dispatch returns the error
	return err
}

// ignoreCancel drops the error of a cancelled preparer, because the dispatcher returns the
// reason.
func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// restTime is how long drain pauses after emptying the queue. A wakeup per record
// would cost more than the record.
const restTime = 40 * time.Millisecond

// drainMost is the maximum number of records per call of the sink.
const drainMost = 256

// drain is the only goroutine that uses sink. drain reads to the end even if the sink fails,
// so that no request waits for the sink. Once over is closed, drain does not pause any more.
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
	sleeper   sleeper
	epoch     time.Time
	arriving  context.Context // done when no more requests are to be sent
	enough    func()          // cancels arriving
	records   chan *tacho.Record
	sessions  workerPool
	deadlines *deadlines
	slots     slots // one per request in flight; the holder of a slot waits for nothing else
}

// dispatch starts each session when due, or as soon after as the limit allows. The
// record keeps the planned due time, so the wait is counted. Due times are absolute: the
// cost of one session does not delay the next. A closed loop also limits sessions: there are
// as many users as the limit, and a user who thinks between two turns does not make room
// for another user.
func (r *runner) dispatch(ctx, arriving context.Context, a *lookahead) error {
	users := newSlots(r.Limit)
	before := -2 * burstGap // start of the previous session
	for {
		it, ok := a.next(arriving)
		if !ok {
			return ctx.Err()
		}
		if r.late(it, it.due) {
			return nil
		}
		if c := r.burstOf(a, it); c != nil { //nolint:contextcheck // as below
			if c.release(arriving) != nil {
				return ctx.Err()
			}
			continue
		}
		a.release(it.bytes)
		// A cancelled session may have released its slot before arriving was done.
		if r.awaitStart(arriving, it, users) != nil || r.acquire(arriving) != nil || ctx.Err() != nil {
			return ctx.Err()
		}
		slot := r.now()
		if r.Limit > 0 && r.late(it, slot) {
			return nil // without a limit, a session due in time is sent, however late
		}
		var user slots // released at the end of the session
		if it.due == tacho.ASAP {
			it.due, user = slot, users
		}
		r.launch(it, slot, slot-before > burstGap, user) //nolint:contextcheck // each request has its own, by r.deadlines
		before = slot
	}
}

// launch starts a session. The dispatcher yields to it, because on another thread the
// session would leave about 50 microseconds later. In a burst each session would have to
// wait for those before it, so all threads run them.
func (r *runner) launch(it *item, slot time.Duration, alone bool, user slots) {
	if alone && r.sendInline(it, slot) {
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

// awaitStart waits until a session may start, except for the slot of its request.
func (r *runner) awaitStart(arriving context.Context, it *item, users slots) error {
	if it.due == tacho.ASAP {
		return users.take(arriving)
	}
	return r.sleeper.until(arriving, r.epoch.Add(it.due))
}

// acquire waits for the slot of a request, and until requests may be sent.
func (r *runner) acquire(ctx context.Context) error {
	if err := r.slots.take(ctx); err != nil {
		return err
	}
	return r.hold(ctx)
}

func (r *runner) hold(ctx context.Context) error {
	if r.Hold == nil {
		return nil
	}
	return r.Hold(ctx)
}

// late reports whether the time for new sessions has passed.
func (r *runner) late(it *item, t time.Duration) bool { return !it.begun && r.over(t) }

func (r *runner) over(t time.Duration) bool { return r.MaxTime > 0 && t >= r.MaxTime }

// now returns the time since the epoch on the wall clock, as the kernel's receive times.
func (r *runner) now() time.Duration {
	return time.Duration(time.Now().UnixNano() - r.epoch.UnixNano())
}

// do makes a call. at is nil if the call is due now. In an open loop nothing waits for the
// end of a response, unless another turn follows.
func (r *runner) do(call tacho.Call, rec *tacho.Record, at *burstRequest) {
	ctx := &deadline{of: r.deadlines}
	defer ctx.cancel()
	o := tacho.CallOptions{RelaxedEnd: r.slots == nil && rec.Turns == 0}
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

// start records that a request is handed to the transport.
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

// slots is a counting semaphore; nil is unlimited.
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
