package wire

import (
	"bytes"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// OpenAIKind is the kind of tokens in a chunk.
type OpenAIKind uint8

// Kinds of tokens. If a chunk contains several kinds, the first kind other than reasoning counts, because the
// answer starts with its first word even if the same chunk carries the end of the reasoning.
const (
	OpenAINoToken OpenAIKind = iota // no token, or a token without text
	OpenAIContentToken
	OpenAIReasoningToken
	OpenAIToolCallToken
)

// OpenAICounts holds the token counts of the usage member. TellsCached reports whether the server sent Cached.
type OpenAICounts struct {
	Prompt, Completion, Cached, Reasoning int
	TellsCached                           bool
}

// OpenAITimings holds the server's own measurements in milliseconds. llama.cpp sends them with the last chunk, and
// so does vLLM on request. 0 means not sent.
type OpenAITimings struct{ Queue, TTFT, Prompt, Generation float64 }

// NaNHappened is the stop string that SGLang reports if a logit was NaN. The finish reason is "stop".
const NaNHappened = "NaN happened"

// An OpenAIDelta holds the decoded content of one stream chunk of completions or chat. The slices are valid until
// the next Decode.
type OpenAIDelta struct {
	Choices  int        // number of choices in the chunk; 0 if the chunk carries only usage
	Kind     OpenAIKind // kind of the tokens in Text
	Text     []byte     // all generated text, of any kind
	Content  []byte     // the part of Text that belongs to the answer
	Calls    []CallPart // parts of tool calls in Text
	Blank    bool       // the chunk contains an empty text: half a character, or the token that ends the answer
	TokenIDs int        // number of token ids, otherwise of log probabilities, if the server sends them
	Finish   []byte     // finish reason, empty if not finished
	NaN      bool       // SGLang ended the answer because a logit was NaN
	Usage    OpenAICounts
	HasUsage bool
	Error    []byte // error message of the server
	Failed   bool   // the chunk is an error
	Timings  OpenAITimings
	Timed    bool // the server sent Timings

	scan    jsonscan.Scanner
	index   int    // of the current tool call
	blank   bool   // the chunk contains an empty text
	role    bool   // the chunk contains a role, which precedes all generated text
	logged  int    // number of log probabilities
	thought bool   // the current choice contained its reasoning, which some servers send under two names
	object  []byte // value of the object member, the type of the chunk
	message []byte // message outside the error member
	matched []byte // what ended the answer, if a stop string did

	// Fast path: most chunks of a stream differ only in one text.
	before       []byte // the previous chunk; empty unless it contained exactly one text
	begin, after int    // range of the text in before
	texts        int    // number of texts in this chunk
}

// Decode decodes a chunk. Decode fails if the chunk is not a JSON object. Fields of the wrong type are treated as
// absent.
func (d *OpenAIDelta) Decode(chunk []byte) error {
	if d.similar(chunk) {
		return nil
	}
	d.before, d.texts = d.before[:0], 0
	if err := d.decode(chunk); err != nil {
		return err
	}
	if d.texts == 1 && len(chunk) <= maxSimilar && string(chunk[d.begin:d.after]) == string(d.Text) && chunk[d.after] == '"' { // the text contains no escapes
		d.before = append(d.before, chunk...)
	}
	return nil
}

// A CallPart is a piece of the name or of the arguments of a tool call: the bytes of Text from From to To.
type CallPart struct {
	Index    int // of the call in the answer
	Name     bool
	From, To int
}

// maxSimilar is the length of the longest chunk stored for comparison with the next chunk.
const maxSimilar = 4 << 10

// similar decodes a chunk if it differs from the previous chunk only in its text. All other fields of d stay as
// they are.
func (d *OpenAIDelta) similar(chunk []byte) bool {
	end := len(chunk) - (len(d.before) - d.after)
	if len(d.before) == 0 || end <= d.begin || !bytes.Equal(chunk[end:], d.before[d.after:]) || !bytes.Equal(chunk[:d.begin], d.before[:d.begin]) {
		return false
	}
	text := chunk[d.begin:end]
	if !jsonscan.NeedsNoEscape(text) {
		return false
	}
	d.Text = append(d.Text[:0], text...)
	if len(d.Content) > 0 {
		d.Content = append(d.Content[:0], text...)
	}
	if len(d.Calls) > 0 {
		d.Calls[0].To = len(text)
	}
	return true
}

func (d *OpenAIDelta) decode(chunk []byte) error {
	d.Choices, d.Kind, d.Text, d.TokenIDs = 0, OpenAINoToken, d.Text[:0], 0
	d.Content, d.Calls = d.Content[:0], d.Calls[:0]
	d.Blank, d.blank, d.role, d.logged = false, false, false, 0
	d.Finish, d.NaN, d.Usage, d.HasUsage = d.Finish[:0], false, OpenAICounts{}, false
	d.Error, d.Failed = d.Error[:0], false
	d.Timings, d.Timed = OpenAITimings{}, false
	d.object, d.message = d.object[:0], d.message[:0]
	if err := d.scan.Document(chunk, d.member); err != nil {
		return err
	}
	d.Blank = d.blank && !d.role && len(d.Text) == 0
	if d.TokenIDs == 0 {
		d.TokenIDs = d.logged
	}
	if !d.Failed && string(d.object) == "error" { // TensorRT-LLM sends no error member
		d.Failed, d.Error = true, append(d.Error, d.message...)
	}
	return nil
}

func (d *OpenAIDelta) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "choices":
		s.Array(d.choice)
	case "usage":
		d.Usage = OpenAICounts{}
		d.HasUsage = s.Object(d.usage)
	case "error":
		d.Error, d.Failed = s.Failure(d.Error[:0])
	case "metrics", "timings":
		d.Timed = s.Object(d.timing) && d.Timings != OpenAITimings{}
	case "object":
		d.object, _ = s.String(d.object[:0])
	case "message":
		d.message, _ = s.String(d.message[:0])
	}
}

func (d *OpenAIDelta) timing(key []byte) {
	s := &d.scan
	switch string(key) {
	case "time_to_first_token_ms":
		d.Timings.TTFT = s.Float()
	case "generation_time_ms", "predicted_ms":
		d.Timings.Generation = s.Float()
	case "queue_time_ms":
		d.Timings.Queue = s.Float()
	case "prompt_ms":
		d.Timings.Prompt = s.Float()
	}
}

func (d *OpenAIDelta) choice() {
	d.Choices++
	d.thought = false
	d.scan.Object(d.choiceMember)
}

func (d *OpenAIDelta) choiceMember(key []byte) {
	s := &d.scan
	switch string(key) {
	case "text":
		d.text(OpenAIContentToken)
	case "delta":
		s.Object(d.deltaMember)
	case "finish_reason":
		if s.Type() == '"' {
			d.Finish, _ = s.String(d.Finish[:0])
		}
	case "matched_stop": // a string or a token id
		if s.Type() == '"' {
			d.matched, _ = s.String(d.matched[:0])
			d.NaN = d.NaN || string(d.matched) == NaNHappened
		}
	case "token_ids", "output_ids": // LMDeploy sends output_ids
		d.TokenIDs += s.Len()
	case "logprobs":
		s.Object(d.logprobs)
	}
}

// logprobs counts the tokens with log probabilities: "tokens" of completions, "content" of chat.
func (d *OpenAIDelta) logprobs(key []byte) {
	if k := string(key); k == "tokens" || k == "content" {
		d.logged += d.scan.Len()
	}
}

func (d *OpenAIDelta) deltaMember(key []byte) {
	s := &d.scan
	switch string(key) {
	case "role":
		d.role = true
	case "content", "refusal":
		d.text(OpenAIContentToken)
	case "reasoning", "reasoning_content":
		if !d.thought {
			d.thought = d.text(OpenAIReasoningToken)
		}
	case "tool_calls":
		s.Array(d.toolCall)
	}
}

func (d *OpenAIDelta) toolCall() {
	d.index = -1 // a server without indices sends each call in one piece
	d.scan.Object(func(key []byte) {
		switch string(key) {
		case "index":
			d.index = d.scan.Natural()
		case "function":
			d.scan.Object(func(key []byte) {
				if k := string(key); k == "name" || k == "arguments" {
					before := len(d.Text)
					if d.text(OpenAIToolCallToken) {
						d.Calls = append(d.Calls, CallPart{d.index, k == "name", before, len(d.Text)})
					}
				}
			})
		}
	})
}

// text reads a generated string and reports whether the string was non-empty.
func (d *OpenAIDelta) text(k OpenAIKind) bool {
	before, begin := len(d.Text), d.scan.Offset()+len(`"`)
	var isString bool
	d.Text, isString = d.scan.String(d.Text)
	if len(d.Text) == before {
		d.blank = d.blank || isString && k == OpenAIContentToken
		return false
	}
	d.texts++
	d.begin, d.after = begin, begin+len(d.Text)-before
	if k == OpenAIContentToken {
		d.Content = append(d.Content, d.Text[before:]...)
	}
	if d.Kind == OpenAINoToken || d.Kind == OpenAIReasoningToken {
		d.Kind = k
	}
	return true
}

func (d *OpenAIDelta) usage(key []byte) {
	s := &d.scan
	switch string(key) {
	case "prompt_tokens":
		d.Usage.Prompt = s.Natural()
	case "completion_tokens":
		d.Usage.Completion = s.Natural()
	case "prompt_tokens_details":
		s.Object(func(key []byte) {
			if string(key) == "cached_tokens" {
				s.NaturalIfPresent(&d.Usage.Cached, &d.Usage.TellsCached)
			}
		})
	case "completion_tokens_details":
		s.Object(func(key []byte) {
			if string(key) == "reasoning_tokens" {
				d.Usage.Reasoning = s.Natural()
			}
		})
	}
}
