package workload

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"tacho"
)

// Within leaves out the sessions of w that have a request for which a context of
// most tokens is too small; 0 leaves out none.
func Within(w Workload, most int) Workload {
	if most == 0 {
		return w
	}
	out := &within{Workload: w, most: most}
	if own, ok := w.(tacho.Pacer); ok {
		return timedWithin{out, own}
	}
	return out
}

type within struct {
	Workload
	most int
	mu   sync.Mutex
	fit  []uint64 // sessions that fit, of those that were looked at
	seen uint64   // how many were
}

// mostUnfit is how many sessions in a row may be too long before we give up.
const mostUnfit = 10_000

// find is which session of the data the i-th is that fits.
func (w *within) find(i uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for unfit := 0; uint64(len(w.fit)) <= i; unfit++ {
		s, err := w.Workload.Session(w.seen)
		switch {
		case errors.Is(err, io.EOF) && len(w.fit) == 0 || unfit == mostUnfit:
			return 0, fmt.Errorf("no prompt of the last %d fits, with its output, into the %d tokens of --max-model-len", unfit, w.most)
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

// fits says whether all requests of a session fit, with the answers that they
// quote as long as they may be.
func (w *within) fits(s *tacho.Session) bool {
	for t := range s.Turns {
		q := &s.Turns[t].Request
		tokens := q.InputTokens + q.MaxTokens
		for _, m := range q.Input.Messages {
			if m.Answer > 0 && m.Answer <= t {
				tokens += s.Turns[m.Answer-1].Request.MaxTokens
			}
		}
		if q.InputTokens > 0 && tokens > w.most {
			return false
		}
	}
	return true
}

// Session implements tacho.Source.
func (w *within) Session(i uint64) (tacho.Session, error) {
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

// Warmup implements Workload: one that fits too, if there is one near.
func (w *within) Warmup(i uint64) (s tacho.Session, err error) {
	for k := range uint64(100) {
		if s, err = w.Workload.Warmup(i + k); err != nil || w.fits(&s) {
			break
		}
	}
	return s, err
}

// Notes implements Workload.
func (w *within) Notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.Workload.Notes()
	if left := w.seen - uint64(len(w.fit)); left > 0 {
		out = append(out, fmt.Sprintf("%d of %d prompts were left out: with their outputs they have more than the %d tokens of --max-model-len", left, w.seen, w.most))
	}
	return out
}

// timedWithin leaves out the times of what is left out, too.
type timedWithin struct {
	*within
	own tacho.Pacer
}

// Arrivals implements tacho.Pacer. Where a session cannot be made there is an
// arrival, which shows the error.
func (w timedWithin) Arrivals() iter.Seq[time.Duration] {
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
