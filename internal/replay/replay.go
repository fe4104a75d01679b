// Package replay reproduces the requests of a stored level and their send times. A replay needs no server and no
// clock: the engine drives it on the wall clock, and prediction drives it on a virtual clock.
package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
)

// Sessions holds the sessions of a level and their send times. Sessions implements tacho.Pacer, and tacho.Source
// with lengths instead of prompts.
type Sessions struct {
	order []uint64 // by send time
	of    map[uint64][]turn
}

var (
	_ tacho.Pacer  = (*Sessions)(nil)
	_ tacho.Source = (*Sessions)(nil)
)

// A turn is one request of the stored level.
type turn struct {
	number           int
	at               time.Duration
	input, maxTokens int
	exact            bool
}

// New reads the records of a level. If a concurrency limit delayed requests (limited), the send time of a request
// is the time when it got a slot; otherwise its due time.
func New(records iter.Seq2[*tacho.Record, error], limited bool) (*Sessions, error) {
	s := &Sessions{of: map[uint64][]turn{}}
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		at := r.Due
		if limited {
			at = r.Slot
		}
		if at < 0 || r.Probe {
			continue // never sent
		}
		s.of[r.Session] = append(s.of[r.Session], turn{r.Turn, at, r.Input, r.Asked, r.Exact})
	}
	for session, turns := range s.of {
		slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.number, b.number) })
		if turns[0].number != 0 {
			return nil, fmt.Errorf("the first request of session %d is missing: records of the run are lost", session)
		}
	}
	if len(s.of) == 0 {
		return nil, errors.New("it sent no requests")
	}
	s.order = slices.SortedFunc(maps.Keys(s.of), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(s.of[a][0].at, s.of[b][0].at), cmp.Compare(a, b))
	})
	return s, nil
}

// Len returns the number of sessions.
func (s *Sessions) Len() int { return len(s.order) }

// Rate returns the mean number of sessions started per second, +Inf if all started at once.
func (s *Sessions) Rate() float64 {
	return float64(len(s.order)) / s.of[s.order[len(s.order)-1]][0].at.Seconds()
}

// Arrivals implements tacho.Pacer.
func (s *Sessions) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, at := range s.Numbered() {
			if !yield(at) {
				return
			}
		}
	}
}

// Numbered returns the arrivals with the session numbers of the stored level.
func (s *Sessions) Numbered() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		for _, i := range s.order {
			if !yield(i, s.of[i][0].at) {
				return
			}
		}
	}
}

// Session implements tacho.Source. Requests contain lengths but no prompts.
func (s *Sessions) Session(i uint64) (tacho.Session, error) {
	turns, ok := s.of[i]
	if !ok {
		return tacho.Session{}, io.EOF
	}
	out := tacho.Session{ID: i}
	for _, t := range turns {
		out.Turns = append(out.Turns, tacho.Turn{
			At:      t.at - turns[0].at,
			Request: tacho.Request{Session: i, Turn: t.number, InputTokens: t.input, MaxTokens: t.maxTokens, IgnoreEOS: t.exact},
		})
	}
	return out, nil
}

// WithPrompts returns the sessions of work, the workload of the stored level, at the stored send times. A turn
// starts no earlier than in the stored level, and no earlier than the turns it waits for allow. Turns never sent
// are left out.
func (s *Sessions) WithPrompts(work tacho.Source) tacho.Source { return &promptSource{s, work} }

type promptSource struct {
	sessions *Sessions
	work     tacho.Source
}

// Session implements tacho.Source.
func (o *promptSource) Session(i uint64) (tacho.Session, error) {
	turns, ok := o.sessions.of[i]
	if !ok {
		return tacho.Session{}, io.EOF
	}
	made, err := o.work.Session(i)
	if errors.Is(err, io.EOF) {
		return made, fmt.Errorf("session %d was sent, but is no longer in the data", i)
	}
	if err != nil {
		return made, err
	}
	out := tacho.Session{ID: made.ID}
	at := map[int]int{} // new index by turn number
	for k, t := range turns {
		if t.number >= len(made.Turns) {
			return made, fmt.Errorf("session %d had %d turns or more, and now has %d: the data or its options changed", i, t.number+1, len(made.Turns))
		}
		one := made.Turns[t.number]
		if err := t.check(i, &one.Request); err != nil {
			return made, err
		}
		if one.After == nil && t.number > 0 {
			one.After = []int{t.number - 1}
		}
		one.After = moved(one.After, at)
		one.Request.Input.Messages = slices.Clone(one.Request.Input.Messages)
		for m := range one.Request.Input.Messages {
			if msg := &one.Request.Input.Messages[m]; msg.Answer > 0 {
				msg.Answer = at[msg.Answer-1] + 1
			}
		}
		at[t.number] = k
		one.Think, one.At = 0, t.at-turns[0].at
		out.Turns = append(out.Turns, one)
	}
	return out, nil
}

// moved returns the new indexes of the turns in after.
func moved(after []int, at map[int]int) []int {
	if after == nil {
		return nil
	}
	out := make([]int, 0, len(after))
	for _, k := range after {
		if to, ok := at[k]; ok {
			out = append(out, to)
		}
	}
	return out
}

// check returns an error if q differs from the request that was sent.
func (t turn) check(session uint64, q *tacho.Request) error {
	differs := func(a, b int) bool { return a > 0 && b > 0 && abs(a-b) > 16+a/10 } // token counters differ slightly
	if slices.ContainsFunc(q.Input.Messages, func(m tacho.Message) bool { return m.Answer > 0 }) {
		q = &tacho.Request{InputTokens: t.input, MaxTokens: q.MaxTokens} // its length depends on the answers it quotes
	}
	if q.MaxTokens != t.maxTokens || differs(t.input, q.InputTokens) {
		return fmt.Errorf("request %d.%d had %d prompt tokens and asked for %d, and now has %d and asks for %d: the data or its options changed",
			session, t.number, t.input, t.maxTokens, q.InputTokens, q.MaxTokens)
	}
	return nil
}

func abs(n int) int { return max(n, -n) }
