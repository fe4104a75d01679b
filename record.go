package tacho

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Never is the timestamp of an event that did not happen.
const Never = time.Duration(-1)

// A Record is everything known about one finished request. The engine emits nothing but records, and every number in
// a report is computed from records.
type Record struct {
	Stage   int     `json:"stage"`
	Session uint64  `json:"session"`
	Turn    int     `json:"turn"`
	Turns   int     `json:"turns,omitempty"` // planned number of turns in the session; 0 means one
	ID      string  `json:"id,omitempty"`
	Labels  Labels  `json:"labels,omitempty"`
	Agent   string  `json:"agent,omitempty"`   // the load generator that sent the request; empty if there is only one
	Probe   bool    `json:"probe,omitempty"`   // sent in addition to the load and summarized separately
	Input   int     `json:"input_tokens"`      // prompt tokens counted by the workload; 0 means unknown
	Asked   int     `json:"asked_tokens"`      // requested output tokens
	Exact   bool    `json:"exact"`             // the request asked for exactly Asked tokens
	Inputs  int     `json:"inputs,omitempty"`  // texts or documents in the request; 0 means one
	AudioS  float64 `json:"audio_s,omitempty"` // seconds of audio in the input

	Timeline

	Usage      *Usage         `json:"usage,omitempty"` // the server's own counts, if reported
	Output     int            `json:"output_tokens"`   // output tokens, from the most trusted count available
	OutputFrom CountSource    `json:"output_from,omitempty"`
	Finish     string         `json:"finish,omitempty"`     // the server's finish reason
	Server     *ServerTimes   `json:"server,omitempty"`     // the server's own measurements, if reported
	Endpoint   string         `json:"endpoint,omitempty"`   // the server that received the request, if there are several
	Attempts   int            `json:"attempts,omitempty"`   // number of times sent; 0 means once. Timestamps of sending are from the first attempt
	Text       string         `json:"text,omitempty"`       // the generated text, if the run keeps texts
	Calls      []FunctionCall `json:"tool_calls,omitempty"` // the tool calls in Text, if the run keeps texts and the protocol separates them

	// Answer is the part of Text without reasoning and tool calls. The next turn of a session quotes Answer. It is not
	// stored.
	Answer string `json:"-"`

	Failure *Failure `json:"failure,omitempty"` // nil means success
}

// NewRecord returns the record of a request that was not sent yet.
func NewRecord(stage int, q *Request, due time.Duration) *Record {
	return &Record{
		Stage: stage, Session: q.Session, Turn: q.Turn, ID: q.ID, Labels: q.Labels,
		Input: q.InputTokens, Asked: q.MaxTokens, Exact: q.IgnoreEOS, AudioS: q.AudioS,
		Timeline: NewTimeline(due),
	}
}

// AnswerTokens returns the number of output tokens in the answer itself, without reasoning and tool calls. It uses the
// server's count of reasoning tokens, or the share of events if the server reports no count.
func (r *Record) AnswerTokens() int {
	if r.Usage != nil && r.Usage.Reasoning > 0 {
		return max(r.Output-r.Usage.Reasoning, 0)
	}
	said, all := 0, 0
	for _, e := range r.Events {
		n := max(int(e.Tokens), 1)
		if e.Kind == NoText {
			n = 0
		}
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

// OK reports whether the request succeeded.
func (r *Record) OK() bool { return r.Failure == nil }

// A Timeline holds the timestamps of one request, in order of time, as offsets from the epoch of the stage. Never
// marks an event that did not happen.
type Timeline struct {
	Due   time.Duration `json:"due_ns"`   // the scheduled send time
	Slot  time.Duration `json:"slot_ns"`  // the concurrency limit admitted the request
	Start time.Duration `json:"start_ns"` // the request was passed to the transport
	Conn  time.Duration `json:"conn_ns"`  // a connection was ready
	Sent  time.Duration `json:"sent_ns"`  // the first byte of the request was written
	Wrote time.Duration `json:"wrote_ns"` // the last byte of the request was written
	Head  time.Duration `json:"head_ns"`  // the first byte of the response arrived

	Opening Events `json:"opening,omitempty"` // events before the first token event without text, token ids or log probabilities
	Events  Events `json:"events"`            // token arrivals

	End time.Duration `json:"end_ns"` // the response was complete or had failed

	Clock       Clock `json:"clock"`                  // the source of the timestamps in Head and Events
	FellBack    int   `json:"fell_back,omitempty"`    // wire clock only: timestamps missing on the wire and taken from the kernel instead
	Conns       int   `json:"conns"`                  // connections tried; above 1 if the server closed a kept-alive connection before receiving a byte
	Reused      bool  `json:"reused"`                 // the connection had carried an earlier request
	Retransmits int   `json:"retransmits,omitempty"`  // segments of the request that our kernel sent again, because they or their acknowledgements were lost
	OutOfOrder  int   `json:"out_of_order,omitempty"` // segments of the response that arrived before an earlier one, which was lost or overtaken; the data had to wait for it

	SentSlack  time.Duration `json:"sent_slack_ns,omitempty"`  // upper bound of how much later than Sent the first byte left: the duration of the write, or 0 if the clock saw the byte leave
	ClockMoved time.Duration `json:"clock_moved_ns,omitempty"` // correction added to these times to match the coordinator's clock, if several machines measured
	ClockStep  time.Duration `json:"clock_step_ns,omitempty"`  // how far the wall clock moved against the monotonic clock during the request
}

// NewTimeline returns the timeline of a request that was not sent yet.
func NewTimeline(due time.Duration) Timeline {
	return Timeline{Due: due, Slot: Never, Start: Never, Conn: Never, Sent: Never, Wrote: Never, Head: Never, End: Never}
}

// First returns the arrival time of the first token, or Never. An event of Opening is never the first token, because
// servers and gateways announce answers and keep connections alive with such events.
func (t *Timeline) First() time.Duration {
	if len(t.Events) == 0 {
		return Never
	}
	return t.Events[0].At
}

// Arrivals returns pointers to all events, in order of time.
func (t *Timeline) Arrivals() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for _, events := range []Events{t.Opening, t.Events} {
			for i := range events {
				if !yield(&events[i]) {
					return
				}
			}
		}
	}
}

// Last returns the arrival time of the last token, or Never.
func (t *Timeline) Last() time.Duration {
	if len(t.Events) == 0 {
		return Never
	}
	return t.Events[len(t.Events)-1].At
}

// An Event is the arrival of one or more tokens. At is the time of the last byte of the event, as stamped by the
// timeline's Clock.
type Event struct {
	At      time.Duration
	ReadLag int32 // nanoseconds from At until our code received the event; saturates at 2.1 s
	Tokens  int16 // tokens in the event; 0 if the protocol does not say
	Kind    TokenKind
	Slack   Slack // how much earlier the event may have arrived, if it shared its read with a later event; always 0 with the wire clock
}

// Events are the token arrivals of one request, in order of time.
type Events []Event

// Coalesced reports whether At is only an upper bound, because the event shared its read with a later one.
func (e Event) Coalesced() bool { return e.Slack != 0 }

// Slack is the largest possible error of a timestamp, in one byte, because timelines make up most of a stored run.
// The value is rounded up, by an eighth at most. 0 means no error.
type Slack uint8

// MaxSlack is the largest Slack, about an hour. Larger errors saturate.
const MaxSlack Slack = math.MaxUint8

const (
	slackUnit  = 128                  // nanoseconds
	slackBits  = 4                    // bits of the mantissa
	slackSteps = 1 << (slackBits - 1) // steps in each doubling
)

// SlackOf returns the smallest Slack that covers d. It is never 0.
func SlackOf(d time.Duration) Slack {
	units := max((uint64(max(d, 0))+slackUnit-1)/slackUnit, slackSteps) // rounded up
	doublings := bits.Len64(units) - slackBits
	if units&(1<<doublings-1) > 0 {
		units += 1 << doublings
	}
	i := int(units>>doublings) - slackSteps + doublings*slackSteps
	return Slack(min(i+1, int(MaxSlack)))
}

// Duration returns the largest error that s allows.
func (s Slack) Duration() time.Duration {
	if s == 0 {
		return 0
	}
	i := int(s) - 1
	return time.Duration(slackSteps+i%slackSteps) << (i / slackSteps) * slackUnit
}

// TokenKind is the kind of token in an event.
type TokenKind uint8

// The kinds of tokens.
const (
	Content TokenKind = iota
	Reasoning
	ToolCall
	NoText // without text, token ids, log probabilities or a count: half a character, but possibly no token
)

// Clock is the source of a timeline's arrival timestamps.
type Clock uint8

// The clocks, best first.
const (
	WireClock    Clock = iota + 1 // the segment of the last byte passed the network device
	KernelClock                   // the kernel received the last byte
	ReadClock                     // the read returned in our process
	VirtualClock                  // no clock: the time was computed in a simulation
)

var clockNames = [...]string{"none", "wire", "kernel", "read", "virtual"}

func (c Clock) String() string { return clockNames[c] }

// ParseClock returns the clock with the given name.
func ParseClock(name string) (Clock, error) {
	i := slices.Index(clockNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("unknown clock %q", name)
	}
	return Clock(i), nil
}

// Usage holds the server's token counts.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"cached_tokens,omitempty"`    // prompt tokens found in the prefix cache
	Reasoning  int `json:"reasoning_tokens,omitempty"` // part of Completion

	TellsCached bool `json:"tells_cached,omitempty"` // the server reported Cached, which may be 0
}

// ServerTimes are the server's own durations for the parts of a request. 0 means not reported.
type ServerTimes struct {
	Queue   time.Duration `json:"queue_ns,omitempty"`   // in the queue, before the engine started the request
	TTFT    time.Duration `json:"ttft_ns,omitempty"`    // from the arrival of the request to its first token
	Prefill time.Duration `json:"prefill_ns,omitempty"` // processing the prompt
	Decode  time.Duration `json:"decode_ns,omitempty"`  // from the first token to the last
	Total   time.Duration `json:"total_ns,omitempty"`   // from the arrival of the request to its end
}

// CountSource is the source of the output token count.
type CountSource string

// The sources of output token counts, most trusted first.
const (
	FromUsage     CountSource = "usage"     // the server's usage block
	FromTokens    CountSource = "token_ids" // token ids or one-token events on the wire
	FromTokenizer CountSource = "tokenizer" // the text, counted by a tokenizer
	FromEvents    CountSource = "events"    // one for each event, which is a lower bound
)

// Cause is the reason a request failed.
type Cause string

// The causes of failure.
const (
	Refused   Cause = "refused"   // nothing listens on the port
	DNS       Cause = "dns"       // the name does not resolve
	TLS       Cause = "tls"       // the handshake failed
	Connect   Cause = "connect"   // any other failure to connect
	Reset     Cause = "reset"     // the connection broke
	Timeout   Cause = "timeout"   // our deadline passed
	Status    Cause = "status"    // an HTTP status other than 200
	InBand    Cause = "in-band"   // an error inside a 200 stream
	Truncated Cause = "truncated" // the stream ended before its end mark
	Malformed Cause = "malformed" // not valid in this protocol
	TooLarge  Cause = "too-large" // larger than the client accepts
	Empty     Cause = "empty"     // a complete response without a token
	Canceled  Cause = "canceled"  // the run was stopped
	Unsent    Cause = "unsent"    // the request could not be encoded
)

// A FunctionCall is a call of a function that the model asks for.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as received
}

// A Failure describes how and in which phase a request failed.
type Failure struct {
	Cause   Cause  `json:"cause"`
	Phase   string `json:"phase,omitempty"`  // connect, send, wait or stream
	Status  int    `json:"status,omitempty"` // status of the HTTP response, if there was one
	Message string `json:"message"`          // the server's own message, if there was one

	RetryAfter time.Duration `json:"-"` // the delay the server asked for before a retry
}

func (f *Failure) Error() string { return string(f.Cause) + ": " + f.Message }

// Nanos converts a number of nanoseconds to a Duration. Numbers above the range saturate instead of wrapping around.
func Nanos(n float64) time.Duration {
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(n))
}

// SaturatedNanos converts d to 32-bit nanoseconds, for Event.ReadLag.
func SaturatedNanos(d time.Duration) int32 {
	return int32(min(max(int64(d), math.MinInt32), math.MaxInt32))
}
