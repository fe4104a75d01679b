// Package tacho defines the types shared by all packages: the workload (Request, Session, Source), the arrival
// process (Pacer), the server under test (Backend, Call), the measurements (Event, Timeline, Record) and their
// consumers (Sink).
//
// The package starts no goroutine and opens no socket or file. It imports only the standard library, so every other
// package may import it.
package tacho

import (
	"context"
	"iter"
	"time"
)

// A Request is one request to a model, independent of any wire protocol.
type Request struct {
	ID          string // sent as x-request-id
	Session     uint64 // the conversation this request belongs to
	Turn        int    // position in the conversation, from 0
	Model       string // overrides the backend's model, for adapters; empty means the backend's model
	Input       Input
	InputTokens int            // counted by the workload; 0 means unknown
	MaxTokens   int            // requested output tokens
	IgnoreEOS   bool           // generate MaxTokens tokens even if the model ends earlier
	AudioS      float64        // seconds of audio in the input, if known
	Labels      Labels         // low-cardinality groups: class, dataset, adapter
	Extra       map[string]any // merged into the request body last, verbatim
	Header      []Label        // additional headers; they override the headers common to all requests
	Scorer      string         // name of the rule that compares the answer with Reference; not sent
	Reference   string         // the right answer, in the form that the scorer reads; not sent
}

// Input is the input of the model, in exactly one of four forms. If a backend cannot send a form, its Prepare returns
// an error.
type Input struct {
	Text     string    // plain text
	IDs      []int32   // token ids
	Messages []Message // a conversation
	Audio    *Audio    // audio to transcribe
	Plain    bool      // Quote joins Messages into one text, for a protocol without roles
}

// Audio is an audio file. Some servers choose the decoder by the extension in Name.
type Audio struct {
	Name string
	Data []byte
}

// Labels are ordered so that they print and compare the same way every time.
type Labels []Label

// A Label is one key and its value.
type Label struct{ Key, Value string }

// A Session is the unit of arrival: the pacer starts sessions, and the turns
// of a session follow one another. A plain request is a session of one turn.
type Session struct {
	ID    uint64
	Turns []Turn
}

// A Turn is a request and the pause (Think) before it. The pause starts when the turns in After have ended. After
// lists earlier turns of the session; nil means the previous turn. Turns that wait for the same turn run in parallel,
// and a turn that waits for several turns joins them. The pause of the first turn, and of a turn whose After is empty
// but not nil, starts with the session. A turn with a timestamp of its own is never due earlier than At after the
// session's due time.
type Turn struct {
	Think   time.Duration
	After   []int
	At      time.Duration
	Request Request
}

// A Source is the workload: Session(i) for i = 0, 1, 2, ... and io.EOF after the last. The result depends on i alone,
// so any worker can generate its share of the workload, in any order and repeatedly. A Source is safe for concurrent
// use.
type Source interface {
	Session(i uint64) (Session, error)
}

// A Pacer is an arrival process: the due times of sessions, in order, as offsets from the start of a stage. A Pacer
// reads no clock and keeps no state, so ranging twice over the same Pacer yields the same schedule.
type Pacer interface {
	Arrivals() iter.Seq[time.Duration]
}

// ASAP is the arrival time in a closed loop: due as soon as a slot is free. ASAP differs from Never and is never
// stored.
const ASAP = time.Duration(-2)

// A Backend speaks one protocol to one server. Prepare does all work possible before a request is due: it encodes and
// checks the request. A Backend is safe for concurrent use.
type Backend interface {
	Prepare(r *Request) (Call, error)
}

// A Call is an encoded request. Do sends the request once and writes the measurements into rec, with times as offsets
// from epoch. Do returns when the response is complete, has failed, or ctx is done. A failure is data: rec.Failure
// holds the error, and rec keeps the data received before it. Do may be called before the request is due, because the
// first write goes through o.Pass.
type Call interface {
	Do(ctx context.Context, epoch time.Time, rec *Record, o CallOptions)
}

// CallOptions modify one Call. The zero value sends the request immediately.
type CallOptions struct {
	// Gate delays a prepared request until the request is due. If Gate is nil, the request is sent immediately. Gate
	// calls write at the due time, perhaps on another goroutine, so that many requests can leave in quick succession,
	// and returns some time later. write must not block. If Gate returns an error, write was not called and the
	// request must not be sent. Retries do not wait at the gate.
	Gate func(write func()) error

	// RelaxedEnd allows the end of the response to be detected slightly later, because nothing waits for it.
	RelaxedEnd bool
}

// Pass calls write through the Gate, or immediately if Gate is nil.
func (o CallOptions) Pass(write func()) error {
	if o.Gate != nil {
		return o.Gate(write)
	}
	write()
	return nil
}

// A Sink consumes records as requests finish. Add is never called concurrently and must not keep r. Close flushes.
type Sink interface {
	Add(r *Record) error
	Close() error
}
