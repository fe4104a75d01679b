package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// An ending stops the sending of a level before its plan does.
type ending struct {
	stop <-chan struct{} // closed to stop sending; requests in flight finish
	user func()          // ends the level for the user

	mu sync.Mutex
	at time.Time // when the user ended the level; zero if not
}

// newEnding returns the ending of a level that also stops when enough is closed. done
// releases it.
func newEnding(enough <-chan struct{}) (e *ending, done func()) {
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop) })
	e = &ending{stop: stop, user: end}
	go func() {
		select {
		case <-enough:
			end()
		case <-stop:
		}
	}()
	return e, end
}

// EndLevel ends the running level early, as --max-seconds would: no more requests are
// sent, and those in flight finish. It reports whether there is such a level. It may be
// called at any time.
func (r *Runner) EndLevel() bool {
	e := r.ending.Load()
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.IsZero() {
		e.at = time.Now()
	}
	e.user()
	return true
}

// enough returns the channel that stops the sending of the current level.
func (r *Runner) enough() <-chan struct{} {
	if e := r.ending.Load(); e != nil {
		return e.stop
	}
	return r.Enough // of requests aside
}

// endedAfter returns after which time of the level the user ended it.
func (r *Runner) endedAfter(epoch time.Time) (after time.Duration, early bool) {
	e := r.ending.Load()
	if e == nil {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.Speed().Stretch(e.at.Sub(epoch)), !e.at.IsZero()
}

// early stores that the user ended a level, or paused before it.
func (r *Runner) early(s *level) {
	if after, early := r.endedAfter(s.outcome.Epoch); early {
		s.config.EndedEarlyS = after.Seconds()
	}
	if r.paused > 0 {
		s.config.Known = append(s.config.Known, metric.Reason{Code: "paused", Severity: metric.Note, Text: fmt.Sprintf("the user paused the run for %s before this level, and the server was idle: compare it with levels without a pause", metric.Duration(1e3*r.paused.Seconds()))})
	}
}

// hold waits before a level if the user asked for a pause.
func (r *Runner) hold(ctx context.Context) (err error) {
	r.paused = 0
	if r.env.Hold != nil {
		r.paused, err = r.env.Hold(ctx)
	}
	return err
}
