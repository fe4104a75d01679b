package workload

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
)

// LimitContext removes the sessions of w with a request longer than a context of limit
// tokens. If limit is 0, it removes none.
func LimitContext(w Workload, limit int) Workload {
	if limit == 0 {
		return w
	}
	out := &contextLimit{Workload: w, limit: limit}
	if own, ok := w.(tacho.Pacer); ok {
		return timedContextLimit{out, own}
	}
	return out
}

type contextLimit struct {
	Workload
	limit int
	mu    sync.Mutex
	fit   []uint64 // indexes of sessions that fit
	seen  uint64   // number of sessions checked
}

// maxUnfit is the number of consecutive sessions that may be too long before find gives
// up.
const maxUnfit = 10_000

// find returns the index of the i-th session that fits.
func (w *contextLimit) find(i uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for unfit := 0; uint64(len(w.fit)) <= i; unfit++ {
		s, err := w.Workload.Session(w.seen)
		switch {
		case errors.Is(err, io.EOF) && len(w.fit) == 0 || unfit == maxUnfit:
			return 0, fmt.Errorf("none of the last %d prompts and their outputs fit into the %d tokens of --max-model-len", unfit, w.limit)
		case err != nil:
			return 0, err
		}
		if w.fits(&s) {
			w.fit = append(w.fit, w.seen)
			unfit = 0
		}
		w.seen++
	}
	return w.fit[i], nil
}

// fits reports whether all requests of a session fit, assuming the maximum length for
// quoted answers.
func (w *contextLimit) fits(s *tacho.Session) bool {
	for t := range s.Turns {
		q := &s.Turns[t].Request
		tokens := q.InputTokens + q.MaxTokens
		for _, m := range q.Input.Messages {
			if m.Answer > 0 && m.Answer <= t {
				tokens += s.Turns[m.Answer-1].Request.MaxTokens
			}
		}
		if q.InputTokens > 0 && tokens > w.limit {
			return false
		}
	}
	return true
}

// Session implements tacho.Source.
func (w *contextLimit) Session(i uint64) (tacho.Session, error) {
	at, err := w.find(i)
	if err != nil {
		return tacho.Session{}, err
	}
	s, err := w.Workload.Session(at)
	s.ID = i
	for t := range s.Turns {
		s.Turns[t].Request.Session = i
	}
	return s, err
}

// Warmup implements Workload. It searches a few sessions for one that fits.
func (w *contextLimit) Warmup(i uint64) (s tacho.Session, err error) {
	for k := range uint64(100) {
		if s, err = w.Workload.Warmup(i + k); err != nil || w.fits(&s) {
			break
		}
	}
	return s, err
}

// Notes implements Workload.
func (w *contextLimit) Notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.Workload.Notes()
	if left := w.seen - uint64(len(w.fit)); left > 0 {
		out = append(out, fmt.Sprintf("%d of %d prompts were left out because prompt and output exceed the %d tokens of --max-model-len", left, w.seen, w.limit))
	}
	return out
}

// timedContextLimit also removes the arrivals of the removed sessions.
type timedContextLimit struct {
	*contextLimit
	own tacho.Pacer
}

// Arrivals implements tacho.Pacer. If a session cannot be made, Arrivals yields an
// arrival, so that the runner gets the error.
func (w timedContextLimit) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		next, at := uint64(0), uint64(0)
		for due := range w.own.Arrivals() {
			fit, err := w.find(next)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil || fit == at {
				next++
				if !yield(due) || err != nil {
					return
				}
			}
			at++
		}
	}
}
