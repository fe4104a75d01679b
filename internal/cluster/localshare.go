package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
)

// localShare is an agent's share of one level.
type localShare struct {
	command  *command
	progress *shareProgress // finished work of an earlier agent, or nil
	live     live.Feed
	tick     atomic.Pointer[func() live.Tick] // the state since the last heartbeat; nil before the start
	spool    *spool
	uplink   *uplink
	cancel   context.CancelFunc // ends sending and delivery
	stop     context.CancelFunc // ends sending; finished records are still delivered
	enough   context.Context    // done if no more requests are sent
	finish   context.CancelFunc // ends enough
	startAt  chan time.Time
	totals   live.Totals // total of all heartbeats

	done        atomic.Bool  // the share has ended and is delivered, or not needed
	discarded   atomic.Bool  // its records are not needed any more
	interrupted atomic.Bool  // the agent was stopped, or orphaned
	orphaned    atomic.Bool  // no coordinator was heard for too long
	holding     atomic.Int32 // requests held because the lease has ended
	paused      atomic.Int64 // nanoseconds in which requests were held

	state atomic.Pointer[status]
}

// prepare creates a share of a level. The caller holds a.mu.
func (a *agent) prepare(o *command) error {
	if o.Task == nil || o.Parts < 1 || o.Part < 0 || o.Part >= o.Parts {
		return errors.New("the command has no share of a level")
	}
	if a.shareOf(o) != nil {
		return nil // a repeated command
	}
	if a.stopping {
		return errStopping // the records could not be delivered
	}
	if a.attempt != o.Attempt {
		a.discard((*localShare).isUnstarted) // an agent was lost, and the level is divided again
		if a.has(statePreparing, stateReady, stateRunning) {
			return errors.New("the agent is busy with another level")
		}
	}
	if err := o.Task.CheckTargets(a.Allow); err != nil {
		return err
	}
	progress, err := a.takeProgress(o)
	if err != nil {
		return fmt.Errorf("the progress of the share cannot be read: %w", err)
	}
	s, err := newSpool(a.Spool, spoolInfo{o.Run, o.Attempt, o.Share}, a.SpoolLimit)
	if err != nil {
		return err
	}
	s.keepAnswers = o.KeepAnswers
	w := &localShare{
		command: o, progress: progress, spool: s, uplink: &uplink{nats: a.data, spool: s, key: a.key, leader: a.leader},
		startAt: make(chan time.Time, 1),
	}
	w.set(statePreparing, nil)
	all, cancel := context.WithCancel(a.ctx)
	load, stop := context.WithCancel(all)
	w.cancel, w.stop = cancel, stop
	w.enough, w.finish = context.WithCancel(all)
	if a.attempt != o.Attempt || a.shares == nil {
		a.attempt, a.shares = o.Attempt, map[int]*localShare{}
	}
	a.shares[o.Share] = w
	a.active.Go(func() { a.runShare(all, load, w) })
	return nil
}

// runShare sends the share and delivers its records.
func (a *agent) runShare(ctx, load context.Context, w *localShare) {
	defer w.done.Store(true)
	defer w.cancel()
	handed := make(chan error, 1)
	go func() {
		err := w.uplink.run(ctx)
		if errors.Is(err, errUnwanted) {
			w.stop()
		}
		handed <- err
	}()
	client, known, err := a.sendShare(load, w)
	_ = w.spool.Close()
	left := ""
	switch {
	case load.Err() != nil && w.orphaned.Load():
		left, err = "it stopped without a coordinator", nil
	case load.Err() != nil && w.interrupted.Load():
		left, err = "it was stopped", nil
	case load.Err() != nil && ctx.Err() == nil:
		err = nil // the coordinator stopped the level
	}
	w.set(stateEnded, err)
	bad := <-handed
	if bad == nil {
		last := w.spool.final // the spool is closed
		last.Client, last.Reasons, last.Sent, last.Paused = client, known, w.live.Counts.Started.Load(), time.Duration(w.paused.Load())
		if last.Ended, last.Orphaned = left, w.orphaned.Load(); err != nil {
			last.Error = err.Error()
		}
		bad = w.uplink.sendFinal(ctx, last)
	}
	if bad != nil {
		w.set(stateFailed, bad)
	}
	if bad == nil || w.discarded.Load() || errors.Is(bad, errUnwanted) {
		_ = w.spool.remove() // delivered or not needed; the next start of an agent deletes what is left
		return
	}
	a.Say(fmt.Sprintf("Undelivered records are stored in %s. Start an agent with this --spool to deliver them.", w.spool.dir))
}

// stopEarly ends sending because the agent is stopped or has no coordinator. Canceled requests are not recorded, so
// another agent may send them.
func (w *localShare) stopEarly() {
	w.interrupted.Store(true)
	w.spool.dropCanceled()
	w.stop()
}

// sendShare opens the servers, or reuses the open servers of the previous level if they are the same, and sends the share. A second
// share of a level opens its own.
func (a *agent) sendShare(ctx context.Context, w *localShare) (*metric.Client, []metric.Reason, error) {
	t := w.command.Task
	a.mu.Lock()
	r := a.runner
	if r != nil && t.Fits(a.runnerTask) {
		a.runner = nil
	} else {
		r = nil
	}
	a.mu.Unlock()
	if r == nil {
		var err error
		env := a.Env()
		env.Observer = live.Messages{To: a.Say}
		if r, err = run.OpenTask(ctx, t, env); err != nil {
			return nil, nil, err
		}
	}
	defer a.keepRunner(r, t)
	r.Enough = w.enough.Done()
	part := run.Share{
		K: w.command.Part, N: w.command.Parts, Live: &w.live, Start: w.waitForStart, Hold: func(ctx context.Context) error { return w.hold(ctx, &a.contact) },
		Begin: func(epoch time.Time, health func() *metric.Client) {
			tick := func() live.Tick {
				t := w.live.Tick(time.Since(epoch))
				if !w.done.Load() {
					t.Client = health()
				}
				return t
			}
			w.tick.Store(&tick)
		},
	}
	if before := w.progress; before != nil {
		part.Begun, part.Now = before.Partial, before.Elapsed
		part.Skip = func(i uint64) bool { _, has := slices.BinarySearch(before.Skip, i); return has }
	}
	return r.Share(ctx, t, part, w.spool)
}

// keepRunner keeps a runner for the next level, instead of an older one.
func (a *agent) keepRunner(r *run.Runner, t *run.Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != "" {
		r, a.runner, a.runnerTask = a.runner, r, t
	}
	if r != nil {
		r.Close()
	}
}

// waitForStart reports that the share is ready, and waits for the start command.
func (w *localShare) waitForStart(ctx context.Context) (time.Time, error) {
	w.set(stateReady, nil)
	select {
	case at := <-w.startAt:
		w.set(stateRunning, nil)
		return at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// monotonic converts a wall-clock time in nanoseconds since 1970 to the monotonic clock of this process. Changes of the
// wall clock do not move a schedule that starts there.
func monotonic(wall int64) time.Time {
	now := time.Now()
	return now.Add(time.Duration(wall - now.UnixNano()))
}

func (w *localShare) set(now string, err error) {
	s := &status{State: now}
	if err != nil {
		s.State, s.Error, s.Usage = stateFailed, err.Error(), errors.As(err, new(*run.UsageError))
	}
	w.state.Store(s)
}

func (w *localShare) heartbeat() heartbeat {
	b := heartbeat{Attempt: w.command.Attempt, Share: w.command.Share}
	if tick := w.tick.Load(); tick != nil {
		b.Tick = (*tick)()
		w.totals = w.totals.Plus(b.Tick.Totals)
	}
	b.Totals = w.totals
	return b
}
