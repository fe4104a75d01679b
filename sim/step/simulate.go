package step

import (
	"cmp"
	"slices"
	"time"
)

// An Arrival is a request and when it reaches the server.
type Arrival struct {
	At time.Duration
	Request
}

// A Trace is what became of an arrival.
type Trace struct {
	ID       uint64
	Arrival  time.Duration
	Admitted time.Duration // when it got into the batch
	Events   []TokenEvent  // in order of time; the first is the first token
	Finish   string        // FinishStop or FinishLength
	EOS      bool          // the last token is the end of sequence, which has no text
	Cached   int           // prompt tokens from the prefix cache
	Preempts int
	Err      error // why the engine would not take it; then nothing else is set
}

// A TokenEvent is the moment at which one or more tokens came out.
type TokenEvent struct {
	At     time.Duration
	Tokens int
}

// Simulate serves the arrivals in virtual time and returns a trace for each,
// in their order, and the state of the engine at the end.
func Simulate(p Profile, seed uint64, arrivals []Arrival) ([]Trace, Stats, error) {
	e, err := New(p, seed)
	if err != nil {
		return nil, Stats{}, err
	}
	order := make([]int, len(arrivals))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(arrivals[a].At, arrivals[b].At) })

	traces := make([]Trace, len(arrivals))
	var end time.Duration
	collect := func(s *seq, tokens int) {
		t := &traces[s.index]
		if t.Events == nil {
			t.Admitted, t.Cached = s.admitted, s.cached
			t.Events = make([]TokenEvent, 0, s.emits)
		}
		t.Events = append(t.Events, TokenEvent{end, tokens})
		if s.generated == s.emits {
			t.Finish, t.EOS, t.Preempts = s.reason(), s.stops, s.preempts
		}
	}
	var now time.Duration
	for {
		for len(order) > 0 && arrivals[order[0]].At <= now {
			i := order[0]
			order = order[1:]
			a := arrivals[i]
			a.index = i
			traces[i] = Trace{ID: a.ID, Arrival: a.At}
			traces[i].Err = e.Add(a.At, &a.Request)
		}
		var busy bool
		if end, busy = e.Next(now); busy {
			e.finish(collect)
			now = end
			continue
		}
		if len(order) == 0 {
			return traces, e.Stats(), nil
		}
		now = arrivals[order[0]].At
	}
}
