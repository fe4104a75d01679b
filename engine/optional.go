package engine

import (
	"context"
	"time"

	"tacho"
)

// A Starter is a tacho.Call that can be sent without a goroutine that waits for the
// answer. A Call may implement it.
type Starter interface {
	// Start sends the request if it can be sent at once, and says whether it was sent.
	// If so, then is called once something of the answer has arrived, or never will:
	// perhaps before Start returns, on any goroutine, and it must not wait. The finish
	// function that then is given does the rest of Do. If whole is true, the answer
	// seems to have arrived to its end, and finish hardly waits for anything.
	Start(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions, then func(finish func(), whole bool)) bool
}

// A Batcher is a tacho.Sink for which several records at once are less work. A Sink
// may implement it.
type Batcher interface {
	AddAll(rs []*tacho.Record) error // as Add; the slice is not kept either
}

// AddAll adds all records to a sink, whatever errors it returns, and returns its first
// error.
func AddAll(s tacho.Sink, rs []*tacho.Record) (first error) {
	if b, ok := s.(Batcher); ok {
		return b.AddAll(rs)
	}
	for _, r := range rs {
		if err := s.Add(r); err != nil && first == nil {
			first = err
		}
	}
	return first
}
