package engine

import (
	"context"
	"time"

	"github.com/tacho-bench/tacho"
)

// Starter is a tacho.Call that can be sent without a goroutine that waits for the
// response. A Call may implement Starter.
type Starter interface {
	// Start sends the request if possible without waiting, and reports whether it did.
	// If so, Start calls then once bytes of the response have arrived, or cannot arrive any
	// more, perhaps before Start returns and on any goroutine. then must not wait. finish
	// does the rest of Do. If whole is true, the response seems complete, and finish
	// hardly waits.
	Start(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions, then func(finish func(), whole bool)) bool
}

// Batcher is a tacho.Sink that handles several records at lower cost. A Sink may implement
// Batcher.
type Batcher interface {
	AddAll(rs []*tacho.Record) error // as Add; the slice is not kept
}

// AddAll adds all records to a sink, even after errors, and returns the first error.
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
