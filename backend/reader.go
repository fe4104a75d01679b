package backend

import (
	"bytes"
	"math"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tacho"
	"tacho/internal/limit"
	"tacho/transport"
	"tacho/wire"
)

const (
	maxBody  = 64 << 10 // how much of an answer that is no stream is kept for its message
	maxQuote = 200      // how much of a malformed payload is shown
	// maxReserve is how many events are made room for at once, however many
	// tokens were asked for.
	maxReserve = 4096
)

// A chunk is what one event of a stream says, in any protocol.
type chunk struct {
	token  bool            // the event brings tokens
	kind   tacho.TokenKind // of them
	tokens int             // how many; 0 if the wire does not say
	text   []byte
	said   []byte // of a text of several kinds, the content; nil where all of it is of one
	whole  bool   // text is all that was generated, and replaces what came before

	end    bool   // the stream is complete
	finish []byte // the finish reason, empty while there is none
	blank  bool   // beside the finish reason there is a text, and it is empty
	empty  bool   // a token event without text, token ids or a count: perhaps it brings no token

	counted bool // usage is given
	usage   tacho.Usage
	timed   bool // times are given
	times   tacho.ServerTimes
	marked  bool // this stream will have an end mark

	failed  bool
	message []byte // the server's words for a failure

	scratch any // what the decoder wants for the next chunk, of this stream or another
}

// chunks are used again: each open stream would have one.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// A decoder reads the payloads of one stream, in order. But for its scratch c is empty when decode
// is called, and what decode puts there is used before the next call.
type decoder interface {
	decode(payload []byte, c *chunk) error
}

// A reader is the transport.Consumer of one response: it splits and decodes
// what arrived, and enters token events into the record.
type reader struct {
	client   *client
	exchange *transport.Exchange
	decoder  decoder
	rec      *tacho.Record
	epoch    int64 // wall-clock nanoseconds
	asked    int   // output tokens

	started bool   // the two below are settled
	stream  bool   // what arrives is a stream of events
	whole   bool   // the server answered in one document instead
	body    []byte // the beginning of what arrived, for messages

	split splitter
	base  int64 // offset in the stream of the data being consumed
	reads []transport.Read
	next  int            // the first of reads that may hold the next event
	held  transport.Read // arrival of an event whose blank line is still to come

	lastRecv  uint32 // of the token event before
	lastSince int32
	lastLate  bool
	unwired   int // token events whose times are not the wire clock's
	payloads  int
	broken    int // of them, could not be read
	text      []byte
	said      []byte // of text, the content
	ended     bool
	opening   int      // how many events are empty before the first that is not
	closing   *closing // an event that ends the answer and has no text
	marked    bool     // there will be an end mark
	failure   *tacho.Failure
	bound     error // what there was too much of
}

// A closing is an event with a finish reason and nothing else. Some servers
// (vLLM) send the token that made the model stop in it, and others only say
// that all was sent: the server's count tells, and it comes later.
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
		r.sort()
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

// sort tells a stream from an answer in one piece. Only types that cannot be a
// stream are taken at their word: some servers and proxies mislabel theirs.
func (r *reader) sort() {
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

// types reads media types. The answers of a server have the same, as a rule.
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

// arrival is the read that holds the byte at offset. Offsets must not go back.
func (r *reader) arrival(offset int64) transport.Read {
	if offset < r.base {
		return r.held
	}
	for r.next < len(r.reads)-1 && int64(r.reads[r.next].End) <= offset-r.base {
		r.next++
	}
	return r.reads[r.next]
}

// event takes one event of the stream.
func (r *reader) event(e wire.SSEEvent) {
	if len(e.Data) == 0 {
		return
	}
	r.payloads++
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
	case err != nil && r.ended && string(bytes.TrimSpace(e.Data)) == wire.OpenAIDone:
		return // gateways end every stream so, whatever its protocol
	case err != nil:
		if r.broken++; r.broken == 1 {
			r.note(tacho.Malformed, err.Error()+": "+r.client.quote(e.Data))
		}
		if r.broken == limit.Broken {
			r.bound = limit.Count("events that cannot be read", limit.Broken)
		}
		return
	}
	if c.failed {
		r.note(tacho.InBand, r.client.clip(string(c.message)))
	}
	switch {
	case c.token:
		r.closing = nil
		r.token(c, r.arrival(e.End))
	case len(c.finish) > 0:
		r.closing = &closing{r.arrival(e.End), c.blank}
		r.behind(r.closing.at)
	default:
		r.behind(r.arrival(e.End))
	}
	if r.client.KeepText {
		r.keep(c)
	}
	r.account(c)
	r.ended, r.marked = r.ended || c.end, r.marked || c.marked
	if len(c.finish) > 0 {
		r.rec.Finish = limit.Clip(c.finish)
		if badFinish[r.rec.Finish] {
			r.note(tacho.InBand, "the server ended the stream with finish reason "+r.rec.Finish)
		}
	}
}

// keep keeps what was generated, and apart from it what of it is the answer.
func (r *reader) keep(c *chunk) {
	if c.whole {
		r.text, r.said = r.text[:0], r.said[:0]
	}
	if len(r.text)+len(c.text) > limit.Answer {
		r.bound = limit.Bytes("an answer", limit.Answer)
		return
	}
	r.text = append(r.text, c.text...)
	switch {
	case c.said != nil:
		r.said = append(r.said, c.said...)
	case c.kind == tacho.Content:
		r.said = append(r.said, c.text...)
	}
}

// account keeps what the server counted and measured; the last word counts.
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

// badFinish are the finish reasons by which servers say that they gave up.
var badFinish = map[string]bool{"error": true, "abort": true, "parse_error": true}

func (r *reader) token(c *chunk, at transport.Read) {
	events := r.rec.Events
	switch n := len(events); {
	case n == limit.Events:
		r.bound = limit.Count("events with tokens", limit.Events)
		return
	case n == 0:
		if cap(events) == 0 {
			events = make(tacho.Events, 0, min(max(r.asked, 0), maxReserve)+1)
		}
	case at.Recv == r.lastRecv && !at.Wire:
		events[n-1].Slack = tacho.SlackOf(time.Duration(r.lastSince))
	}
	if c.empty && r.opening == len(events) {
		r.opening++
	}
	r.lastRecv, r.lastSince, r.lastLate = at.Recv, at.Since, at.Late
	if !at.Wire {
		r.unwired++
	}
	r.rec.Events = append(events, tacho.Event{
		At:      time.Duration(at.At - r.epoch),
		ReadLag: at.Lag,
		Tokens:  int16(min(c.tokens, math.MaxInt16)),
		Kind:    c.kind,
	})
}

// behind is told of an event that is no token. If it was received together with
// the last token, that may have come before it: right before it, as the end of an
// answer follows its last token, unless the client was late to read.
func (r *reader) behind(at transport.Read) {
	n := len(r.rec.Events)
	if n > 0 && at.Recv == r.lastRecv && !at.Wire && r.lastLate {
		r.rec.Events[n-1].Slack = tacho.SlackOf(time.Duration(r.lastSince))
	}
}

// finish is told that no more will come.
func (r *reader) finish() {
	if r.stream {
		r.split.Close(r.event)
	}
	if r.whole {
		r.wholeFailure()
	}
	r.close()
	r.open()
	if r.client.KeepText {
		r.rec.Text = string(r.text)
		if r.rec.Said = r.rec.Text; len(r.said) < len(r.text) {
			r.rec.Said = string(r.said)
		}
	}
	r.rec.Output, r.rec.OutputFrom = output(r.rec)
}

// close enters the closing event as a token if the server counted one token more
// than came. If it counted several more, some events held several tokens. Then
// the closing event counts only if it had a place for a text, or if there was no
// other event.
func (r *reader) close() {
	if r.closing == nil || r.rec.Usage == nil || r.failure != nil {
		return
	}
	more := r.rec.Usage.Completion
	for _, e := range r.rec.Events {
		more -= max(int(e.Tokens), 1)
	}
	if more == 1 || more > 1 && (r.closing.blank || len(r.rec.Events) == 0) {
		r.token(&chunk{}, r.closing.at)
	}
}

// open drops empty events before the first token. An empty event may be a token whose
// text is still to come, as a part of a character, or may say only that the answer
// begins: the server's count tells. If the server counted more tokens than there are
// events, events hold several, and an empty one holds none.
func (r *reader) open() {
	events := r.rec.Events
	if r.opening == 0 || r.opening == len(events) || r.rec.Usage == nil || r.rec.Usage.Completion == 0 {
		return
	}
	surplus := -r.rec.Usage.Completion
	for _, e := range events {
		surplus += max(int(e.Tokens), 1)
	}
	drop := r.opening
	if surplus >= 0 {
		drop = min(drop, surplus)
	}
	r.rec.Events = events[drop:]
}

// wholeFailure looks for an error in an answer that came in one document.
func (r *reader) wholeFailure() {
	var c chunk
	if r.decoder.decode(bytes.TrimSpace(r.body), &c) == nil && c.failed {
		r.note(tacho.InBand, r.client.clip(string(c.message)))
	}
}

// output is the number of output tokens, and who counted them.
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

// note keeps the first failure: what follows is mostly a consequence of it.
func (r *reader) note(cause tacho.Cause, message string) {
	if r.failure == nil {
		r.failure = r.fail(cause, message)
	}
}

func (r *reader) fail(cause tacho.Cause, message string) *tacho.Failure {
	return &tacho.Failure{Cause: cause, Phase: "stream", Status: r.exchange.Status, Message: message}
}

// offset is a time of the exchange as an offset from the epoch.
func (r *reader) offset(wallNanos int64) time.Duration {
	if wallNanos == 0 {
		return tacho.Never
	}
	return time.Duration(wallNanos - r.epoch)
}
