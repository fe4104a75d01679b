// Package replay is what a kept level sent, and when. It needs no server and no
// clock: the engine drives it on the wall clock, prediction on a virtual one.
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

	"tacho"
)

// Sessions are those of a level, with the times at which they were sent. They
// are a tacho.Pacer, and a tacho.Source of requests that have lengths and no
// prompts.
type Sessions struct {
	order []uint64 // by time
	of    map[uint64][]turn
}

var (
	_ tacho.Pacer  = (*Sessions)(nil)
	_ tacho.Source = (*Sessions)(nil)
)

// A turn is a request that was sent.
type turn struct {
	number       int
	at           time.Duration
	input, asked int
	exact        bool
}

// Of reads the records of a level. Where a limit held requests back (limited),
// the time of one is when the limit let it go; else it is when it was due.
func Of(records iter.Seq2[*tacho.Record, error], limited bool) (*Sessions, error) {
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
			continue // it was never let go
		}
		s.of[r.Session] = append(s.of[r.Session], turn{r.Turn, at, r.Input, r.Asked, r.Exact})
	}
	for session, turns := range s.of {
		slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.number, b.number) })
		if turns[0].number != 0 {
			return nil, fmt.Errorf("of session %d the first request is missing: records of the run are lost", session)
		}
	}
	if len(s.of) == 0 {
		return nil, errors.New("it sent nothing")
	}
	s.order = slices.SortedFunc(maps.Keys(s.of), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(s.of[a][0].at, s.of[b][0].at), cmp.Compare(a, b))
	})
	return s, nil
}

// Len is how many sessions there are.
func (s *Sessions) Len() int { return len(s.order) }

// Rate is how many sessions began in a second, on average; +Inf is all at once.
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

// Numbered are the arrivals with the numbers that the sessions had.
func (s *Sessions) Numbered() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		for _, i := range s.order {
			if !yield(i, s.of[i][0].at) {
				return
			}
		}
	}
}

// Session implements tacho.Source: lengths without prompts.
func (s *Sessions) Session(i uint64) (tacho.Session, error) {
	turns, ok := s.of[i]
	if !ok {
		return tacho.Session{}, io.EOF
	}
	out := tacho.Session{ID: i}
	for _, t := range turns {
		out.Turns = append(out.Turns, tacho.Turn{
			At:      t.at - turns[0].at,
			Request: tacho.Request{Session: i, Turn: t.number, InputTokens: t.input, MaxTokens: t.asked, IgnoreEOS: t.exact},
		})
	}
	return out, nil
}

// Over are the sessions of a workload, which made them before, at the times at
// which they were sent. A turn goes no earlier than it did, and no earlier than
// what it waits for allows; one that was never sent is left out.
func (s *Sessions) Over(work tacho.Source) tacho.Source { return &over{s, work} }

type over struct {
	sessions *Sessions
	work     tacho.Source
}

// Session implements tacho.Source.
func (o *over) Session(i uint64) (tacho.Session, error) {
	turns, ok := o.sessions.of[i]
	if !ok {
		return tacho.Session{}, io.EOF
	}
	made, err := o.work.Session(i)
	if errors.Is(err, io.EOF) {
		return made, fmt.Errorf("session %d was sent, and the data has no such session any more", i)
	}
	if err != nil {
		return made, err
	}
	out := tacho.Session{ID: made.ID}
	at := map[int]int{} // where each turn is now
	for k, t := range turns {
		if t.number >= len(made.Turns) {
			return made, fmt.Errorf("session %d had %d turns or more, and now has %d: the data or its options are not what they were", i, t.number+1, len(made.Turns))
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

// moved are the turns that a turn waits for, where they are now.
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

// check complains about a request that is not the one that was sent.
func (t turn) check(session uint64, q *tacho.Request) error {
	differs := func(a, b int) bool { return a > 0 && b > 0 && abs(a-b) > 16+a/10 } // counters differ a little
	if slices.ContainsFunc(q.Input.Messages, func(m tacho.Message) bool { return m.Answer > 0 }) {
		q = &tacho.Request{InputTokens: t.input, MaxTokens: q.MaxTokens} // it is as long as the answers in it
	}
	if q.MaxTokens != t.asked || differs(t.input, q.InputTokens) {
		return fmt.Errorf("request %d.%d had %d prompt tokens and asked for %d, and is now made with %d and %d: the data or its options are not what they were",
			session, t.number, t.input, t.asked, q.InputTokens, q.MaxTokens)
	}
	return nil
}

func abs(n int) int { return max(n, -n) }
