package tacho

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Never is the time of a moment that did not come.
const Never = time.Duration(-1)

// A Record is everything known of one finished request. Records are all the
// engine emits, and every number in a report is a function of records.
type Record struct {
	Stage   int     `json:"stage"`
	Session uint64  `json:"session"`
	Turn    int     `json:"turn"`
	Turns   int     `json:"turns,omitempty"` // turns its session was to have; 0 is one
	ID      string  `json:"id,omitempty"`
	Labels  Labels  `json:"labels,omitempty"`
	Agent   string  `json:"agent,omitempty"`   // which of several load generators sent it; empty is the only one
	Probe   bool    `json:"probe,omitempty"`   // sent beside the load, and summed up apart
	Input   int     `json:"input_tokens"`      // prompt tokens, as the workload counted; 0 unknown
	Asked   int     `json:"asked_tokens"`      // output tokens asked for
	Exact   bool    `json:"exact"`             // the server was told to produce exactly Asked
	Inputs  int     `json:"inputs,omitempty"`  // texts or documents in it; 0 is one
	AudioS  float64 `json:"audio_s,omitempty"` // seconds of sound in the input

	Timeline

	Usage      *Usage       `json:"usage,omitempty"` // the server's own counts, if it gave any
	Output     int          `json:"output_tokens"`   // output tokens, by the most trusted count there is
	OutputFrom CountSource  `json:"output_from,omitempty"`
	Finish     string       `json:"finish,omitempty"`   // the server's finish reason
	Server     *ServerTimes `json:"server,omitempty"`   // the server's own measurements, if it gave any
	Endpoint   string       `json:"endpoint,omitempty"` // which of several servers it went to
	Attempts   int          `json:"attempts,omitempty"` // how often it was sent; 0 is once. The times of sending are the first attempt's
	Text       string       `json:"text,omitempty"`     // what was generated, where the run keeps it

	// Said is the part of Text that is the answer itself: no reasoning, no calls of tools.
	// The next turn of a session quotes it; it is not kept.
	Said string `json:"-"`

	Failure *Failure `json:"failure,omitempty"` // nil is success
}

// NewRecord is the record of a request of which nothing has happened yet.
func NewRecord(stage int, q *Request, due time.Duration) *Record {
	return &Record{
		Stage: stage, Session: q.Session, Turn: q.Turn, ID: q.ID, Labels: q.Labels,
		Input: q.InputTokens, Asked: q.MaxTokens, Exact: q.IgnoreEOS, AudioS: q.AudioS,
		Timeline: NewTimeline(due),
	}
}

// SaidTokens is how many of the output tokens are the answer itself: all but
// those of reasoning and tool calls, as the server counted them, or else by
// their share of the events.
func (r *Record) SaidTokens() int {
	if r.Usage != nil && r.Usage.Reasoning > 0 {
		return max(r.Output-r.Usage.Reasoning, 0)
	}
	said, all := 0, 0
	for _, e := range r.Events {
		n := max(int(e.Tokens), 1)
		all += n
		if e.Kind == Content {
			said += n
		}
	}
	if said == all {
		return r.Output
	}
	return r.Output * said / all
}

// OK says whether the request succeeded.
func (r *Record) OK() bool { return r.Failure == nil }

// A Timeline is the story of one request: plain data, in order of time. All
// times are offsets from the epoch of the stage; Never is a moment that did
// not come.
type Timeline struct {
	Due   time.Duration `json:"due_ns"`   // the plan wanted it sent
	Slot  time.Duration `json:"slot_ns"`  // the concurrency limit let it go
	Start time.Duration `json:"start_ns"` // it was handed to the transport
	Conn  time.Duration `json:"conn_ns"`  // it had a connection
	Sent  time.Duration `json:"sent_ns"`  // its first byte was written
	Wrote time.Duration `json:"wrote_ns"` // its last byte was written
	Head  time.Duration `json:"head_ns"`  // the first byte of the response arrived

	Events Events `json:"events"` // tokens arrived

	End time.Duration `json:"end_ns"` // the response was over, well or badly

	Clock       Clock `json:"clock"`                  // what stamped Head and Events
	FellBack    int   `json:"fell_back,omitempty"`    // of the wire clock: times that it missed, and that are the kernel's
	Conns       int   `json:"conns"`                  // connections tried; above 1 the server had closed the one before it got a byte
	Reused      bool  `json:"reused"`                 // the connection had served another request
	Retransmits int   `json:"retransmits,omitempty"`  // segments of the request that our kernel sent again, for the network had lost them or their acknowledgement
	OutOfOrder  int   `json:"out_of_order,omitempty"` // segments of the answer that came before one that was sent earlier: that was lost or overtaken, and what had come had to wait for it

	SentSlack  time.Duration `json:"sent_slack_ns,omitempty"`  // how much later than Sent its first byte may have left: as long as that write took, and 0 where the clock saw it leave
	ClockMoved time.Duration `json:"clock_moved_ns,omitempty"` // by how much these times were moved, to bring them to the clock of whoever led several machines
	ClockStep  time.Duration `json:"clock_step_ns,omitempty"`  // how far the wall clock moved against the monotonic one meanwhile
}

// NewTimeline returns a timeline in which nothing has happened yet.
func NewTimeline(due time.Duration) Timeline {
	return Timeline{Due: due, Slot: Never, Start: Never, Conn: Never, Sent: Never, Wrote: Never, Head: Never, End: Never}
}

// First is when the first token arrived, or Never.
func (t *Timeline) First() time.Duration {
	if len(t.Events) == 0 {
		return Never
	}
	return t.Events[0].At
}

// Last is when the last token arrived, or Never.
func (t *Timeline) Last() time.Duration {
	if len(t.Events) == 0 {
		return Never
	}
	return t.Events[len(t.Events)-1].At
}

// An Event is the arrival of one or more tokens. At is when the kernel (or,
// by the timeline's Clock, the reader) had the last byte of it.
type Event struct {
	At      time.Duration
	ReadLag int32 // nanoseconds from At until our code had it; saturates at 2.1 s
	Tokens  int16 // tokens in it; 0 if the wire does not say
	Kind    TokenKind
	Slack   Slack // how much earlier it may have come: it shared its read with a later token event, and not by the wire clock
}

// Events are the token arrivals of one request, in order of time.
type Events []Event

// Coalesced says whether At is an upper bound only.
func (e Event) Coalesced() bool { return e.Slack != 0 }

// Slack is how far above the truth a time may be, in one byte: timelines are
// most of what a run keeps. It is rounded up, by an eighth at most. 0 is none.
type Slack uint8

// UnknownSlack is more than any that is known.
const UnknownSlack Slack = math.MaxUint8

const (
	slackUnit  = 128                  // nanoseconds
	slackBits  = 4                    // of a mantissa
	slackSteps = 1 << (slackBits - 1) // within a doubling
)

// SlackOf is the least that covers d, and never none.
func SlackOf(d time.Duration) Slack {
	units := max((uint64(max(d, 0))+slackUnit-1)/slackUnit, slackSteps) // rounded up
	doublings := bits.Len64(units) - slackBits
	if units&(1<<doublings-1) > 0 {
		units += 1 << doublings
	}
	i := int(units>>doublings) - slackSteps + doublings*slackSteps
	return Slack(min(i+1, int(UnknownSlack)))
}

// Duration is the most that it may be.
func (s Slack) Duration() time.Duration {
	if s == 0 {
		return 0
	}
	i := int(s) - 1
	return time.Duration(slackSteps+i%slackSteps) << (i / slackSteps) * slackUnit
}

// TokenKind is what sort of token an event carried.
type TokenKind uint8

// The kinds of token.
const (
	Content TokenKind = iota
	Reasoning
	ToolCall
)

// Clock is what stamped the arrivals of a timeline.
type Clock uint8

// The clocks, best first.
const (
	WireClock    Clock = iota + 1 // when the segment of the last byte passed the network device
	KernelClock                   // the kernel's receive time of the last byte
	ReadClock                     // when the read returned in our process
	VirtualClock                  // none: it did not happen, it was computed
)

var clockNames = [...]string{"none", "wire", "kernel", "read", "virtual"}

func (c Clock) String() string { return clockNames[c] }

// ParseClock is the clock of a name.
func ParseClock(name string) (Clock, error) {
	i := slices.Index(clockNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("unknown clock %q", name)
	}
	return Clock(i), nil
}

// Usage is what the server says it counted.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"cached_tokens,omitempty"`    // prompt tokens taken from a cache
	Reasoning  int `json:"reasoning_tokens,omitempty"` // of Completion

	TellsCached bool `json:"tells_cached,omitempty"` // Cached was told, and may be 0
}

// ServerTimes are how long the server says the parts of a request took; 0 is a
// part it does not tell.
type ServerTimes struct {
	Queue   time.Duration `json:"queue_ns,omitempty"`   // before the engine took it up
	TTFT    time.Duration `json:"ttft_ns,omitempty"`    // from its arrival to its first token
	Prefill time.Duration `json:"prefill_ns,omitempty"` // reading the prompt
	Decode  time.Duration `json:"decode_ns,omitempty"`  // from the first token to the last
	Total   time.Duration `json:"total_ns,omitempty"`   // from its arrival to its end
}

// CountSource says who counted the output tokens.
type CountSource string

// The counters, most trusted first.
const (
	FromUsage     CountSource = "usage"     // the server's usage
	FromTokens    CountSource = "token_ids" // token ids or one-token events on the wire
	FromTokenizer CountSource = "tokenizer" // the text, counted by a tokenizer
	FromEvents    CountSource = "events"    // one for each event: a lower bound
)

// Cause is why a request failed.
type Cause string

// The causes of failure.
const (
	Refused   Cause = "refused"   // nobody listens
	DNS       Cause = "dns"       // the name does not resolve
	TLS       Cause = "tls"       // the handshake failed
	Connect   Cause = "connect"   // any other way not to get a connection
	Reset     Cause = "reset"     // the connection broke
	Timeout   Cause = "timeout"   // our deadline passed
	Status    Cause = "status"    // an HTTP status other than 200
	InBand    Cause = "in-band"   // an error inside a 200 stream
	Truncated Cause = "truncated" // the stream ended before its end mark
	Malformed Cause = "malformed" // not the protocol it should be
	TooLarge  Cause = "too-large" // more than is taken from a server
	Empty     Cause = "empty"     // a whole response without a token
	Canceled  Cause = "canceled"  // the run was stopped
	Unsent    Cause = "unsent"    // it could not be encoded
)

// A Failure is how and where a request failed.
type Failure struct {
	Cause   Cause  `json:"cause"`
	Phase   string `json:"phase,omitempty"`  // connect, send, wait or stream
	Status  int    `json:"status,omitempty"` // of the HTTP response, if there was one
	Message string `json:"message"`          // the server's own words where it had any

	RetryAfter time.Duration `json:"-"` // how long the server asks to be left alone
}

func (f *Failure) Error() string { return string(f.Cause) + ": " + f.Message }

// Nanos is a number of nanoseconds as a Duration; far beyond any run it saturates
// instead of wrapping round.
func Nanos(n float64) time.Duration {
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(n))
}

// SaturatedNanos is d as 32 bits of nanoseconds, for Event.ReadLag.
func SaturatedNanos(d time.Duration) int32 {
	return int32(min(max(int64(d), math.MinInt32), math.MaxInt32))
}
