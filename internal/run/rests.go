package run

import (
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/session"
)

// A rest is the remaining part of a session started by another agent.
type rest struct {
	tacho.Session
	turns int // of the full session
}

// takeUp adds the started sessions to a stage, before all others.
func (part *Share) takeUp(stage *engine.Stage, speed Speed, closed bool) (map[uint64]rest, error) {
	rests := map[uint64]rest{}
	type arrival struct {
		session uint64
		due     time.Duration
	}
	var first []arrival
	for _, b := range part.Begun {
		for i := range b.Finished {
			squeeze(&b.Finished[i], stage, speed)
		}
		whole, err := stage.Source.Session(b.ID)
		if err != nil {
			return nil, err
		}
		left, due := b.Remaining(whole, speed.Squeeze(part.Now))
		if closed {
			due = tacho.ASAP
		}
		if len(left.Turns) > 0 {
			rests[b.ID] = rest{left, len(whole.Turns)}
			first = append(first, arrival{b.ID, due})
		}
	}
	others := stage.Arrivals
	stage.Source, stage.Begun = restSource{stage.Source, rests}, len(first)
	stage.Arrivals = func(yield func(uint64, time.Duration) bool) {
		for _, a := range first {
			if !yield(a.session, a.due) {
				return
			}
		}
		others(yield)
	}
	return rests, nil
}

// squeeze converts a finished turn to the time of a stage, with its answer
// counted.
func squeeze(o *session.FinishedTurn, stage *engine.Stage, speed Speed) {
	if o.Due = speed.Squeeze(o.Due); o.End != tacho.Never {
		o.End = speed.Squeeze(o.End)
	}
	if stage.Count != nil && o.Answer.Text != "" {
		o.Answer.Tokens = stage.Count(o.Answer.Text)
	}
}

// restSource returns remaining parts instead of full sessions.
type restSource struct {
	tacho.Source
	rests map[uint64]rest
}

// Session implements tacho.Source.
func (s restSource) Session(i uint64) (tacho.Session, error) {
	if r, is := s.rests[i]; is {
		return r.Session, nil
	}
	return s.Source.Session(i)
}

// wholeSessions restores the full session length in records of a rest.
type wholeSessions struct {
	tacho.Sink
	rests map[uint64]rest
}

// Add implements tacho.Sink.
func (w wholeSessions) Add(rec *tacho.Record) error {
	if r, is := w.rests[rec.Session]; is {
		rec.Turns = r.turns
	}
	return w.Sink.Add(rec)
}
