package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tacho/wire"
)

// A dialect is one way to ask for an answer and to be told it. Which dialect
// a request speaks is decided by its path.
type dialect struct {
	paths []string
	mime  string // of a streamed answer
	frame frame  // around the JSON of each event of a streamed answer
	// read understands the body of a request; an error is the client's fault.
	read func(in *incoming) (*ask, error)
	// streams is whether every answer is streamed, whatever the body says.
	streams bool
	// lateHead is whether the head of a streamed answer waits for the first
	// token, as it does at servers that want to be able to fail with a status.
	lateHead bool
	// refusal is the body of an answer with an HTTP status other than 200.
	refusal func(p *pose, c *complaint) []byte
	// broken is an error inside a stream that began well, with the end mark of
	// the stream if the dialect still sends one. It returns nil if the server
	// just hangs up. Without it, the error is a refusal in a frame.
	broken func(p *pose, c *complaint) []byte
	// invalid is the status for a request that cannot be answered; 0 is the
	// pose's.
	invalid int
	// overloaded is the status of a full server; 0 is 503.
	overloaded int
	// pick finds the dialect of a body on a path that several share; nil where
	// the path says it all.
	pick func(p *pose, body []byte) *dialect
	// keepAlive is how long a stream may be silent before its first token until
	// a comment is sent; 0 leaves it to the pose.
	keepAlive time.Duration
	// inBand is whether a stream's refusals, too, come as a 200 and an error
	// inside it, unless the body could not be parsed at all.
	inBand bool
}

// dialects are all the ways to ask for an answer.
var dialects = []*dialect{
	completions, chat, responses, embedding, pooling, rerank, transcription,
	generate, tgiStream,
	llamaCompletion,
	ollamaGenerate, ollamaChat,
	anthropicMessages,
	tritonStream, tritonGenerate,
}

// A frame is what stands before and after the JSON of an event.
type frame struct{ begin, end string }

var (
	sseFrame  = frame{wire.SSEBegin, wire.SSEEnd}
	lineFrame = frame{"", "\n"}
)

// A voice tells an answer in the words of a dialect. Each method appends
// bytes to b and returns it.
type voice interface {
	// early is what leaves with the head, before there is a token.
	early(b []byte) []byte
	// tokens is the event of tokens from up to but not including to.
	tokens(b []byte, from, to int) []byte
	// last is what comes after the last token.
	last(b []byte) []byte
	// whole is the answer in one piece, for those who did not ask for a stream.
	whole(b []byte) []byte
}

// An eventVoice tells every event of a stream, and the whole answer, in the
// same words.
type eventVoice struct {
	*ask
	frame frame
	words func(b []byte, from, to int) []byte // appends the JSON that tells some tokens
	after string                              // what comes after the last token
}

func (v *eventVoice) early(b []byte) []byte { return b }

func (v *eventVoice) tokens(b []byte, from, to int) []byte {
	if v.unheard(from, to) && !v.isLast(to) {
		return b
	}
	return append(v.words(append(b, v.frame.begin...), from, to), v.frame.end...)
}

func (v *eventVoice) last(b []byte) []byte { return append(b, v.after...) }

func (v *eventVoice) whole(b []byte) []byte { return v.words(b, 0, v.output) }

// parse decodes a body into a type of package wire.
func parse(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return unreadable(err)
	}
	return nil
}

// appendJSON appends v, which must be something that always encodes: the
// types of package wire, made here, do.
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

// A template is the JSON of a value with holes in it, so that an event that is
// written for every token is encoded once for each answer.
type template []string

// The marks a template is cut at. Strings have a character that is for private
// use, numbers a value that nothing real has.
const (
	textHole = "\ue000"
	intHole  = -918273645
	intHole2 = -918273646
	probHole = -918273647 // of log probabilities
)

// newTemplate cuts encoded JSON at the holes, which must be given in the order
// in which they appear.
func newTemplate(encoded string, holes ...any) template {
	var t template
	for _, h := range holes {
		piece, tail, found := strings.Cut(encoded, fmt.Sprint(h))
		if !found { // the voice that asked for it is wrong, and its first test says so
			panic(fmt.Sprintf("sim: no hole %v in %q", h, encoded))
		}
		t = append(t, piece)
		encoded = tail
	}
	return append(t, encoded)
}
