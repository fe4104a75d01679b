// Package traceid computes the trace context of a request from its id.
package traceid

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Header is the HTTP header that carries the span of the sender (W3C Trace Context).
const Header = "traceparent"

// An ID is the identity of the span of one request. Each request is a trace of its own.
type ID struct {
	Trace [16]byte
	Span  [8]byte
}

// Of returns the ID of a request. run is a random number of the run, because request ids may recur in other runs.
func Of(run uint64, request string) (id ID) {
	sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, run), request...))
	copy(id.Trace[:], sum[:16])
	copy(id.Span[:], sum[16:])
	return id
}

// randomBits is the number of bits at the end of a trace id that tracing systems use for sampling.
const randomBits = 56

// Sampled reports whether the request belongs to a sample. The choice depends on the ID alone.
func (id ID) Sampled(fraction float64) bool {
	chance := binary.BigEndian.Uint64(id.Trace[8:]) & (1<<randomBits - 1)
	return float64(chance) < fraction*(1<<randomBits)
}

// Parent returns the value of Header. Its last digits tell the server that the trace is recorded.
func (id ID) Parent() string { return fmt.Sprintf("00-%x-%x-01", id.Trace, id.Span) }
