package tacho

import (
	"bytes"
	"slices"
	"time"
)

// An Encoder appends records as Record.Append does. What it has put into words of the
// steps of an engine it uses for all records that share them. Its zero value is ready.
type Encoder struct {
	words map[any]*stepWords
	ones  []byte
}

// stepWords are the times between steps of one engine, one after the other.
type stepWords struct {
	first int // step; the time is that since the step before it
	text  []byte
	ends  []int // of each in text
}

// mostStepWords bounds what is kept of an engine: steps.
const mostStepWords = 1 << 12

// beforeEvents and afterEvents are the other members of a record.
var beforeEvents, afterEvents = aroundEvents()

func aroundEvents() (before, after members[Record]) {
	i := slices.IndexFunc(recordMembers, func(m member[Record]) bool { return m.name == "events" })
	return recordMembers[:i], recordMembers[i+1:]
}

// Append is r as JSON, in one line, at the end of a buffer.
func (e *Encoder) Append(to []byte, r *Record) ([]byte, error) {
	if r.Steps.Of == nil || r.Clock != VirtualClock || !r.plain() || len(r.Events)-r.Steps.Event < 2 {
		return r.Append(to)
	}
	b, ok := beforeEvents.list(to, '{', r)
	if !ok {
		return r.Append(to)
	}
	b = e.events(append(append(b, ','), eventsName...), r)
	if b, ok = afterEvents.list(b, ',', r); !ok {
		return r.Append(to)
	}
	return append(b, '}'), nil
}

// events appends those of a record, of which the latest are steps.
func (e *Encoder) events(b []byte, r *Record) []byte {
	alone := r.Events[:r.Steps.Event+1]
	b = append(b, `{"at_ns":[`...)
	before := time.Duration(0)
	for i := range alone {
		b = appendNumber(b, int64(alone[i].At-before))
		before = alone[i].At
	}
	b = closeList(append(b, e.gaps(r)...))
	b = append(b, `,"tokens":[`...)
	for i := range alone {
		b = appendNumber(b, int64(alone[i].Tokens))
	}
	n := 2 * (len(r.Events) - len(alone))
	if len(e.ones) < n {
		e.ones = bytes.Repeat([]byte("1,"), n)
	}
	return append(closeList(append(b, e.ones[:n]...)), '}')
}

// gaps are the times between the steps of a record, with a comma after each.
func (e *Encoder) gaps(r *Record) []byte {
	if e.words == nil {
		e.words = map[any]*stepWords{}
	}
	w := e.words[r.Steps.Of]
	if w == nil {
		w = &stepWords{}
		e.words[r.Steps.Of] = w
	}
	events := r.Events[r.Steps.Event:]
	from, to := r.Steps.First+1, r.Steps.First+len(events)
	if from < w.first || from > w.first+len(w.ends) || len(w.ends) > mostStepWords {
		w.first, w.text, w.ends = from, w.text[:0], w.ends[:0]
	}
	for k := w.first + len(w.ends); k < to; k++ {
		i := k - r.Steps.First
		w.text = appendNumber(w.text, int64(events[i].At-events[i-1].At))
		w.ends = append(w.ends, len(w.text))
	}
	begin := 0
	if from > w.first {
		begin = w.ends[from-w.first-1]
	}
	return w.text[begin:w.ends[to-w.first-1]]
}
