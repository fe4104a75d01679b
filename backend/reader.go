package backend

import (
	"bytes"
	"math"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/transport"
)

const (
	maxBody  = 64 << 10 // bytes of a response other than a stream stored for error messages
	maxQuote = 200      // bytes of a malformed payload shown in errors
	// maxReserve limits the number of events allocated in advance, regardless of the number of tokens requested.
	maxReserve = 4096
)

// A chunk is the decoded content of one stream event, independent of the protocol.
type chunk struct {
	token   bool            // the event carries tokens
	kind    tacho.TokenKind // kind of the tokens
	tokens  int             // number of tokens; 0 if unknown
	mute    bool            // the event carries neither text nor token ids nor log probabilities, but possibly a count
	text    []byte
	content []byte          // content part of a text with several kinds; nil if the text is of one kind
	calls   []wire.CallPart // tool calls in text
	whole   bool            // text is the complete text so far and replaces earlier text

	end    bool   // the stream is complete
	finish []byte // finish reason, empty if not finished
	blank  bool   // the event carries an empty text next to the finish reason

	counted bool // usage is set
	usage   tacho.Usage
	timed   bool // times is set
	times   tacho.ServerTimes
	marked  bool // the stream will end with an end mark

	failed  bool
	message []byte // error message of the server

	scratch any // decoder state reused for the next chunk, of this stream or another
}

// chunks recycles chunks, because otherwise each open stream would hold one.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// A decoder decodes the payloads of one stream, in order. c is empty except for scratch when decode is called. The
// values decode stores in c are used before the next call.
type decoder interface {
	decode(payload []byte, c *chunk) error
}

// A reader is the transport.Consumer of one response. It splits and decodes the received bytes and adds token
// events to the record.
type reader struct {
	client    *client
	exchange  *transport.Exchange
	decoder   decoder
	rec       *tacho.Record
	epoch     int64 // wall-clock nanoseconds
	requested int   // number of output tokens requested

	started bool   // stream and whole are set
	stream  bool   // the response is a stream of events
	whole   bool   // the response is one document instead of a stream
	body    []byte // beginning of the response, for error messages

	split splitter
	base  int64 // stream offset of the data being consumed
	reads []transport.Read
	next  int            // index of the first read that may contain the next event
	held  transport.Read // arrival of an event still waiting for its blank line

	lastRecv  uint32 // of the previous token event
	lastSince int32
	lastLate  bool
	unwired   int // token events without a wire timestamp
	payloads  int
	broken    int // number of unreadable payloads
	text      []byte
	content   []byte // content part of text
	calls     toolCalls
	ended     bool
	done      bool     // [DONE] ended the stream; what follows does not belong to the answer
	closing   *closing // event that ended the answer without text
	marked    bool     // the stream will end with an end mark
	failure   *tacho.Failure
	bound     error // the limit exceeded, if any
}

// A closing is an event with only a finish reason. In some servers (vLLM), this event carries the stop token; in
// others, it only announces the end. The server's token count, which arrives later, decides.
type closing struct {
	at    transport.Read
	blank bool
}

func newReader(c *client, x *transport.Exchange, rec *tacho.Record) *reader {
	return &reader{client: c, exchange: x, rec: rec, decoder: c.decoder(&c.Options), split: c.framing.splitter()}
}

// Consume implements transport.Consumer.
func (r *reader) Consume(data []byte, reads []transport.Read) error {
	if !r.started {
		r.started = true
		r.classify()
	}
	keep := maxBody
	if r.stream {
		keep = maxQuote
	}
	r.body = append(r.body, data[:min(max(keep-len(r.body), 0), len(data))]...)
	if !r.stream {
		return nil
	}
	r.reads, r.next = reads, 0
	if err := r.split.Feed(data, r.event); err != nil {
		return err
	}
	if end, ok := r.split.Pending(); ok && end >= r.base {
		r.held = r.arrival(end)
	}
	r.base += int64(len(data))
	r.reads = nil
	return r.bound
}

// classify distinguishes a stream from a response in one document. Only content types that cannot be a stream are
// trusted, because some servers and proxies mislabel streams.
func (r *reader) classify() {
	if r.exchange.Status != http.StatusOK {
		return
	}
	switch t := r.client.types.of(r.exchange.Type); {
	case r.client.framing == oneDocument:
		r.stream = true
	case t == "application/json", strings.HasSuffix(t, "+json"), t == "text/html":
		r.whole = true
	default:
		r.stream = true
	}
}

// types parses media types and caches the last one, because most responses of a server have the same type.
type types struct{ last atomic.Pointer[[2]string] }

func (ts *types) of(header string) string {
	if last := ts.last.Load(); last != nil && last[0] == header {
		return last[1]
	}
	t, _, err := mime.ParseMediaType(header)
	if err != nil {
		t = ""
	}
	ts.last.Store(&[2]string{header, t})
	return t
}

// arrival returns the read that contains the byte at offset. Offsets must not decrease.
func (r *reader) arrival(offset int64) transport.Read {
	if offset < r.base {
		return r.held
	}
	for r.next < len(r.reads)-1 && int64(r.reads[r.next].End) <= offset-r.base {
		r.next++
	}
	return r.reads[r.next]
}

// event processes one event of the stream.
func (r *reader) event(e wire.SSEEvent) {
	if len(e.Data) == 0 || r.done {
		return
	}
	r.payloads++
	done := string(bytes.TrimSpace(e.Data)) == wire.OpenAIDone
	c := chunks.Get().(*chunk)
	defer chunks.Put(c)
	*c = chunk{scratch: c.scratch}
	err := r.decoder.decode(e.Data, c)
	switch {
	case string(e.Name) == "error":
		if !c.failed || len(c.message) == 0 {
			c.message = e.Data
		}
		c.failed = true
	case err != nil && r.ended && done:
		r.done = true // some gateways send [DONE] at the end of every stream, in any protocol
		return
	case err != nil:
		if r.broken++; r.broken == 1 {
			r.note(tacho.Malformed, err.Error()+": "+r.client.quote(e.Data))
		}
		if r.broken == limit.BadEvents {
			r.bound = limit.Count("unreadable events", limit.BadEvents)
		}
		return
	}
	if c.failed {
		r.note(tacho.InBand, r.client.clip(string(c.message)))
	}
	r.time(c, e)
	if r.client.KeepText {
		r.keep(c)
	}
	r.account(c)
	r.ended, r.marked = r.ended || c.end, r.marked || c.marked
	r.done = r.ended && done
	if len(c.finish) > 0 {
		r.rec.Finish = limit.Clip(c.finish)
		if badFinish[r.rec.Finish] {
			r.note(tacho.InBand, "the server ended the stream with finish reason "+r.rec.Finish)
		}
	}
}

// time stores when an event arrived: as a token, as the end, or as an event without a token.
func (r *reader) time(c *chunk, e wire.SSEEvent) {
	switch {
	case c.token:
		r.closing = nil
		r.token(c, r.arrival(e.End))
	case len(c.finish) > 0, c.end && r.closing == nil && len(r.rec.Events) == 0 && len(r.rec.Opening) > 0:
		r.closing = &closing{r.arrival(e.End), c.blank}
		r.nonToken(r.closing.at)
	default:
		r.nonToken(r.arrival(e.End))
	}
}

// keep stores the generated text and, separately, its content part.
func (r *reader) keep(c *chunk) {
	if c.whole {
		r.text, r.content = r.text[:0], r.content[:0]
	}
	if len(r.text)+len(c.text) > limit.Answer {
		r.bound = limit.Bytes("an answer", limit.Answer)
		return
	}
	r.text = append(r.text, c.text...)
	r.calls.add(c)
	switch {
	case c.content != nil:
		r.content = append(r.content, c.content...)
	case c.kind == tacho.Content:
		r.content = append(r.content, c.text...)
	}
}

// toolCalls collects the pieces of tool calls. A piece without an index begins a new call if it is a name.
type toolCalls struct {
	index            []int
	names, arguments [][]byte
}

func (t *toolCalls) add(c *chunk) {
	for _, p := range c.calls {
		i := slices.Index(t.index, p.Index)
		if p.Index < 0 {
			if i = len(t.index) - 1; p.Name {
				i = -1
			}
		}
		if i < 0 {
			if len(t.index) == limit.Calls {
				return
			}
			i, t.index = len(t.index), append(t.index, p.Index)
			t.names, t.arguments = append(t.names, nil), append(t.arguments, nil)
		}
		to := &t.arguments[i]
		if p.Name {
			to = &t.names[i]
		}
		*to = append(*to, c.text[p.From:p.To]...)
	}
}

func (t *toolCalls) list() (out []tacho.FunctionCall) {
	for i := range t.index {
		out = append(out, tacho.FunctionCall{Name: string(t.names[i]), Arguments: string(t.arguments[i])})
	}
	return out
}

// account stores token counts and timings from the server. Later values replace earlier ones.
func (r *reader) account(c *chunk) {
	if c.counted {
		if r.rec.Usage == nil {
			r.rec.Usage = new(tacho.Usage)
		}
		*r.rec.Usage = c.usage
	}
	if c.timed {
		times := c.times
		r.rec.Server = &times
	}
}

// badFinish lists the finish reasons used by servers for failures.
var badFinish = map[string]bool{"error": true, "abort": true, "parse_error": true, wire.NaNHappened: true}

// token adds an event to the record. A mute event before the first text goes to Opening: it may be half a character,
// but also the announcement of an answer or a heartbeat, and no count distinguishes them, because servers announce counts,
// too. Later, a mute event without a count is no token if the server says how many tokens its events have.
func (r *reader) token(c *chunk, at transport.Read) {
	events, opening := &r.rec.Events, c.mute && len(r.rec.Events) == 0
	if c.mute && c.tokens == 0 {
		c.kind = tacho.NoText
	}
	switch last := len(r.rec.Events) - 1; {
	case opening:
		events = &r.rec.Opening
	case c.kind == tacho.NoText && r.rec.Events[last].Tokens > 0:
		r.nonToken(at)
		return
	}
	if len(r.rec.Opening)+len(r.rec.Events) == limit.Events {
		r.bound = limit.Count("events with tokens", limit.Events)
		return
	}
	if last := r.lastEvent(); last != nil && at.Recv == r.lastRecv && !at.Wire {
		last.Slack = tacho.SlackOf(time.Duration(r.lastSince))
	}
	r.lastRecv, r.lastSince, r.lastLate = at.Recv, at.Since, at.Late
	if !at.Wire && !opening {
		r.unwired++
	}
	if cap(*events) == 0 && !opening {
		*events = make(tacho.Events, 0, min(max(r.requested, 0), maxReserve)+1)
	}
	*events = append(*events, tacho.Event{
		At:      time.Duration(at.At - r.epoch),
		ReadLag: at.Lag,
		Tokens:  int16(min(c.tokens, math.MaxInt16)),
		Kind:    c.kind,
	})
}

// lastEvent returns the event before the next one, or nil.
func (r *reader) lastEvent() *tacho.Event {
	for _, events := range []tacho.Events{r.rec.Events, r.rec.Opening} {
		if n := len(events); n > 0 {
			return &events[n-1]
		}
	}
	return nil
}

// nonToken handles an event without a token. If the last token was received in the same read, the token may have arrived earlier.
// Usually it arrived right before, because the end of an answer follows its last token, unless the client was late to read.
func (r *reader) nonToken(at transport.Read) {
	if last := r.lastEvent(); last != nil && at.Recv == r.lastRecv && !at.Wire && r.lastLate {
		last.Slack = tacho.SlackOf(time.Duration(r.lastSince))
	}
}

// finish is called at the end of the response.
func (r *reader) finish() {
	if r.stream {
		r.split.Close(r.event)
	}
	if r.whole {
		var c chunk
		if r.decoder.decode(bytes.TrimSpace(r.body), &c) == nil && c.failed {
			r.note(tacho.InBand, r.client.clip(string(c.message)))
		}
	}
	r.close()
	if r.client.KeepText {
		r.rec.Text = string(r.text)
		if r.rec.Answer = r.rec.Text; len(r.content) < len(r.text) {
			r.rec.Answer = string(r.content)
		}
		r.rec.Calls = r.calls.list()
	}
	r.rec.Output, r.rec.OutputFrom = output(r.rec)
}

// close counts the closing event as a token if the server counted one token more than received, empty events
// included. If the server counted several more, some events carried several tokens; then the closing event counts
// only if it contained a text member, or if there was no other event. An answer of empty events alone has no other time
// for its tokens than its end.
func (r *reader) close() {
	if r.closing == nil || r.failure != nil {
		return
	}
	only := len(r.rec.Events) == 0
	if r.rec.Usage != nil && r.rec.Usage.Completion > 0 {
		more := r.rec.Usage.Completion - len(r.rec.Opening)
		for _, e := range r.rec.Events {
			more -= max(int(e.Tokens), 1)
		}
		only = only || more == 1 || more > 1 && r.closing.blank
	} else {
		only = only && len(r.rec.Opening) > 0
	}
	if only {
		r.token(&chunk{}, r.closing.at)
	}
}

// output returns the number of output tokens and the source of the count.
func output(rec *tacho.Record) (int, tacho.CountSource) {
	if rec.Usage != nil && rec.Usage.Completion > 0 {
		return rec.Usage.Completion, tacho.FromUsage
	}
	sum := 0
	for _, e := range rec.Events {
		if e.Tokens == 0 {
			return len(rec.Events), tacho.FromEvents
		}
		sum += int(e.Tokens)
	}
	if sum == 0 {
		return 0, ""
	}
	return sum, tacho.FromTokens
}

// note stores only the first failure, because later failures are usually its consequences.
func (r *reader) note(cause tacho.Cause, message string) {
	if r.failure == nil {
		r.failure = r.fail(cause, message)
	}
}

func (r *reader) fail(cause tacho.Cause, message string) *tacho.Failure {
	return &tacho.Failure{Cause: cause, Phase: "stream", Status: r.exchange.Status, Message: message}
}

// offset converts a wall-clock time to an offset from the epoch.
func (r *reader) offset(wallNanos int64) time.Duration {
	if wallNanos == 0 {
		return tacho.Never
	}
	return time.Duration(wallNanos - r.epoch)
}
