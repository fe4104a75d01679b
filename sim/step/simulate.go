package step

import (
	"cmp"
	"slices"
	"time"
)

// An Arrival is a request and its time of arrival at the server.
type Arrival struct {
	At time.Duration
	Request
}

// A Trace is the outcome of an arrival.
type Trace struct {
	ID       uint64
	Arrival  time.Duration
	Admitted time.Duration // when the request entered the batch
	Events   []TokenEvent  // in order of time; the first is the first token
	Finish   string        // FinishStop or FinishLength
	EOS      bool          // the last token is the end of sequence, which has no text
	Cached   int           // prompt tokens from the prefix cache
	Preempts int
	Err      error // set if the engine rejected the request; other fields are then zero
}

// A TokenEvent is the delivery of one or more tokens.
type TokenEvent struct {
	At     time.Duration
	Tokens int
}

// Simulate serves the arrivals in virtual time. It returns a trace for each
// arrival, in their order, and the final state of the engine.
func Simulate(p Profile, seed uint64, arrivals []Arrival) ([]Trace, Stats, error) {
	server, err := NewServer(p, seed)
	if err != nil {
		return nil, Stats{}, err
	}
	order := make([]int, len(arrivals))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(arrivals[a].At, arrivals[b].At) })

	traces := make([]Trace, len(arrivals))
	collect := func(m *Emission) {
		t := m.Owner.(*Trace)
		if m.First {
			t.Admitted, t.Cached = m.Admitted, m.Cached
			t.Events = make([]TokenEvent, 0, 64)
		}
		t.Events = append(t.Events, TokenEvent{m.At, m.Tokens})
		if m.Last {
			t.Finish, t.EOS, t.Preempts = m.Finish, m.EOS, m.Preemptions
		}
	}
	for {
		at, busy := server.Next()
		for len(order) > 0 && (!busy || arrivals[order[0]].At <= at) {
			i := order[0]
			order = order[1:]
			a := arrivals[i]
			a.Owner = &traces[i]
			traces[i] = Trace{ID: a.ID, Arrival: a.At}
			traces[i].Err = server.Add(a.At, &a.Request)
			at, busy = server.Next()
		}
		if !busy {
			return traces, server.Stats(), nil
		}
		server.Advance(at, collect)
	}
}
