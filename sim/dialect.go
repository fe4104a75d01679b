package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

// A dialect is one API for generating answers. The path of a request determines its
// dialect.
type dialect struct {
	paths []string
	mime  string // of a streamed answer
	frame frame  // around the JSON of each event of a streamed answer
	// read parses the body of a request. An error is the client's fault.
	read func(in *incoming) (*generation, error)
	// streams means that every answer is streamed, even if the body does not ask
	// for it.
	streams bool
	// lateHead delays the header of a streamed answer until the first token, so
	// that an earlier error can still set the status.
	lateHead bool
	// errorBody is the body of an answer with an HTTP status other than 200.
	errorBody func(p *emulatedServer, c *apiError) []byte
	// streamError is an error inside a stream that began well, with the end marker
	// if the dialect still sends one. It returns nil if the server just closes the
	// connection. If streamError is nil, the error is an errorBody in a frame.
	streamError func(p *emulatedServer, c *apiError) []byte
	// invalid is the status for an invalid request; 0: the emulated server's.
	invalid int
	// overloaded is the status of a full server; 0: 503.
	overloaded int
	// pick returns the dialect of a body on a path shared by several dialects; nil
	// if the path determines the dialect.
	pick func(p *emulatedServer, body []byte) *dialect
	// keepAlive is the maximum silence before the first token of a stream until a
	// comment is sent; 0: the emulated server's.
	keepAlive time.Duration
	// inBand sends errors of a streamed request as status 200 and an error inside
	// the stream, unless the body could not be parsed.
	inBand bool
}

// dialects are all supported APIs.
var dialects = []*dialect{
	completions, chat, responses, embedding,
	generate, tgiStream,
	llamaCompletion,
	ollamaGenerate, ollamaChat,
	anthropicMessages,
}

// A frame is the text before and after the JSON of an event.
type frame struct{ begin, end string }

var (
	sseFrame  = frame{wire.SSEBegin, wire.SSEEnd}
	lineFrame = frame{"", "\n"}
)

// An encoder encodes an answer for a dialect. Each method appends bytes to b and
// returns the result.
type encoder interface {
	// early is the data sent with the header, before the first token.
	early(b []byte) []byte
	// tokens is the event of tokens from up to but not including to.
	tokens(b []byte, from, to int) []byte
	// last is the data after the last token.
	last(b []byte) []byte
	// whole is the complete answer, for requests without streaming.
	whole(b []byte) []byte
}

// An eventEncoder uses the same JSON for every event of a stream and for the whole
// answer.
type eventEncoder struct {
	*generation
	frame      frame
	appendJSON func(b []byte, from, to int) []byte // appends the JSON of some tokens
	after      string                              // sent after the last token
}

func (v *eventEncoder) early(b []byte) []byte { return b }

func (v *eventEncoder) tokens(b []byte, from, to int) []byte {
	if v.noVisibleText(from, to) && !v.isLast(to) {
		return b
	}
	return append(v.appendJSON(append(b, v.frame.begin...), from, to), v.frame.end...)
}

func (v *eventEncoder) last(b []byte) []byte { return append(b, v.after...) }

func (v *eventEncoder) whole(b []byte) []byte { return v.appendJSON(b, 0, v.output) }

// parse decodes a body into a type of package wire.
func parse(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return parseError(err)
	}
	return nil
}

// appendJSON appends v as JSON. v must always encode, as the wire types created
// here do.
func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, j...)
}

// appendEvent appends v as a server-sent event with a name.
func appendEvent(b []byte, name string, v any) []byte {
	return wire.AppendSSE(b, name, appendJSON(nil, v))
}

// A template is the JSON of a value with holes in it. An event that is sent for
// every token is then encoded once for each answer.
type template []string

// Hole markers. Strings use a private-use character, numbers a value that never
// occurs otherwise.
const (
	textHole = "\ue000"
	intHole  = -918273645
	intHole2 = -918273646
	probHole = -918273647 // of log probabilities
)

// newTemplate cuts encoded JSON at the holes, which must be given in order of
// appearance.
func newTemplate(encoded string, holes ...any) template {
	var t template
	for _, h := range holes {
		piece, tail, found := strings.Cut(encoded, fmt.Sprint(h))
		if !found { // a bug in the encoder, found by its first test
			panic(fmt.Sprintf("sim: no hole %v in %q", h, encoded))
		}
		t = append(t, piece)
		encoded = tail
	}
	return append(t, encoded)
}
