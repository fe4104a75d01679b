// Package tacho is the vocabulary of the tool: what is asked of a server
// (Request, Session, Source), when (Pacer), of whom (Backend, Call), what came
// of it (Event, Timeline, Record) and who listens (Sink).
//
// It holds no behaviour that needs a goroutine, a socket or a file, and it
// imports only the standard library. Every other package may import it; it
// imports none of them.
package tacho

import (
	"context"
	"iter"
	"time"
)

// A Request is one thing asked of a model, free of any wire protocol.
type Request struct {
	ID          string // travels as x-request-id
	Session     uint64 // conversation it belongs to
	Turn        int    // position in the conversation, from 0
	Model       string // overrides the backend's model, for adapters; empty is the backend's
	Input       Input
	InputTokens int            // as the workload counts them; 0 unknown
	MaxTokens   int            // output tokens asked for
	IgnoreEOS   bool           // go on to MaxTokens whatever the model says
	AudioS      float64        // seconds of sound in the input, as far as they are known
	Labels      Labels         // low-cardinality groups: class, dataset, adapter
	Extra       map[string]any // merged into the body last, verbatim
	Header      []Label        // further headers, over those that all requests have
}

// Input is what the model is given, in exactly one of four forms. A backend
// that cannot send a form says so in Prepare.
type Input struct {
	Text     string    // plain text
	IDs      []int32   // token ids
	Messages []Message // a conversation
	Audio    *Audio    // audio to transcribe
	Plain    bool      // of Messages: Quote makes one text of them, for a protocol without roles

	// Unread are placeholders for IDs that were never generated. Only the
	// virtual-time engine accepts them; a million prompts of ids cost it seconds.
	Unread []Unread
}

// Unread is a placeholder for token ids. Placeholders of one number begin alike.
type Unread struct {
	Number uint64
	Tokens int
}

// Audio is a sound as a file: what is in it, and what it is called, for servers
// that go by the ending of the name.
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

// A Turn is a request and the pause before it, counted from the end of the
// turns it waits for: those in After, all of them earlier in the session, or
// the turn before where After is nil. Turns that wait for the same one run side
// by side, and a turn that waits for several joins them. The first turn waits
// for none, and neither does one whose After is empty and not nil: its pause
// counts from the start of the session. At is for turns that have a time of
// their own: whatever they wait for, they are not due before that long after
// the session was.
type Turn struct {
	Think   time.Duration
	After   []int
	At      time.Duration
	Request Request
}

// A Source is the workload: session i for i = 0, 1, 2, ... and io.EOF past the
// last. It is a function of i alone, so any worker can make its own share of
// the workload, in any order, and make it again. It is safe for concurrent use.
type Source interface {
	Session(i uint64) (Session, error)
}

// A Pacer is an arrival process: the offsets from the start of a stage at
// which sessions are due, in order. It reads no clock and keeps no state:
// ranging twice over the same Pacer yields the same schedule.
type Pacer interface {
	Arrivals() iter.Seq[time.Duration]
}

// ASAP is the arrival of a closed loop: due as soon as a slot is free. It is not
// Never, and is never stored.
const ASAP = time.Duration(-2)

// A Backend speaks one protocol to one server. Prepare does all that can be
// done before a request is due: encode it, and complain about it.
// It is safe for concurrent use.
type Backend interface {
	Prepare(r *Request) (Call, error)
}

// A Call is an encoded request. Do sends it, once, and writes into rec what
// happened, with times as offsets from epoch; it returns when the response is
// complete, has failed, or ctx is done. A failure is data: it is in
// rec.Failure, with whatever had arrived before it. Do may be called before the
// request is due: the first write goes through o.Pass.
type Call interface {
	Do(ctx context.Context, epoch time.Time, rec *Record, o CallOptions)
}

// CallOptions say how a Call is made. The zero value sends the request at once.
type CallOptions struct {
	// Gate holds back a request that was made ready before it is due; nil is no gate.
	// It calls write when the request is due, perhaps on another goroutine, so that
	// many requests may leave one right after the other, and returns some time later.
	// write must not wait. After an error write was not called, and the request must
	// not be sent. A request that is sent again passes at once.
	Gate func(write func()) error

	// Unhurried says that nothing waits for the end of the answer, so that the end
	// may be noticed a little later.
	Unhurried bool
}

// Pass calls write at the Gate, or at once if there is none.
func (o CallOptions) Pass(write func()) error {
	if o.Gate != nil {
		return o.Gate(write)
	}
	write()
	return nil
}

// A Sink takes records as they finish. Add is never called concurrently and
// must not keep r. Close flushes.
type Sink interface {
	Add(r *Record) error
	Close() error
}
