package wire

import (
	"bytes"

	"tacho/internal/jsonscan"
)

// OpenAIKind is what sort of token a chunk brings.
type OpenAIKind uint8

// The kinds. A chunk that brings several counts as the last of them: an answer
// has begun when its first word comes, even together with a last thought.
const (
	OpenAINoToken OpenAIKind = iota // nothing was generated, or it has no text
	OpenAIContentToken
	OpenAIReasoningToken
	OpenAIToolCallToken
)

// OpenAICounts are the numbers of a Usage.
type OpenAICounts struct {
	Prompt, Completion, Cached, Reasoning int
	TellsCached                           bool
}

// OpenAITimings are the server's own measurements in milliseconds, which vLLM (if it
// was asked to) and llama.cpp send with the last chunk. 0 means not told.
type OpenAITimings struct{ Queue, TTFT, Prompt, Generation float64 }

// An OpenAIDelta is what a client wants to know of one stream chunk, of completions
// or of chat. Its slices are valid until the next Decode.
type OpenAIDelta struct {
	Choices  int        // choices in the chunk; none in one that brings usage only
	Kind     OpenAIKind // of Text
	Text     []byte     // all that was generated, whatever its kind
	Content  []byte     // of Text, the answer itself
	Blank    bool       // there is a text and it is empty: of half a character, or of the token that ends the answer
	TokenIDs int        // ids of generated tokens, if the server sends them
	Finish   []byte     // the finish reason, empty while there is none
	Usage    OpenAICounts
	HasUsage bool
	Error    []byte // the server's words for what went wrong
	Failed   bool   // the chunk is an error
	Timings  OpenAITimings
	Timed    bool // Timings are given

	scan    jsonscan.Scanner
	blank   bool   // there is an empty text
	role    bool   // a role is told, which comes before anything is generated
	thought bool   // the choice being read has told its reasoning, which goes by two names
	object  []byte // the type of the whole chunk
	message []byte // beside it, not within error

	// The chunks of a stream mostly differ in one text alone.
	before       []byte // the chunk before this one; empty where it had more than one text, or none
	begin, after int    // where that text is in it
	texts        int    // in this chunk
}

// Decode reads a chunk. It fails if the chunk is not a JSON object; fields of
// the wrong type count as absent.
func (d *OpenAIDelta) Decode(chunk []byte) error {
	if d.alike(chunk) {
		return nil
	}
	d.before, d.texts = d.before[:0], 0
	if err := d.decode(chunk); err != nil {
		return err
	}
	if d.texts == 1 && len(chunk) <= longestAlike && string(chunk[d.begin:d.after]) == string(d.Text) && chunk[d.after] == '"' { // there are no escapes in it
		d.before = append(d.before, chunk...)
	}
	return nil
}

// longestAlike is the longest chunk that is kept to compare the next with.
const longestAlike = 4 << 10

// alike reads a chunk that is the one before with another text: all else that
// was read of that is true of this one.
func (d *OpenAIDelta) alike(chunk []byte) bool {
	end := len(chunk) - (len(d.before) - d.after)
	if len(d.before) == 0 || end <= d.begin || !bytes.Equal(chunk[end:], d.before[d.after:]) || !bytes.Equal(chunk[:d.begin], d.before[:d.begin]) {
		return false
	}
	text := chunk[d.begin:end]
	if !jsonscan.Bare(text) {
		return false
	}
	d.Text = append(d.Text[:0], text...)
	if len(d.Content) > 0 {
		d.Content = append(d.Content[:0], text...)
	}
	return true
}

func (d *OpenAIDelta) decode(chunk []byte) error {
	d.Choices, d.Kind, d.Text, d.TokenIDs = 0, OpenAINoToken, d.Text[:0], 0
	d.Content = d.Content[:0]
	d.Blank, d.blank, d.role = false, false, false
	d.Finish, d.Usage, d.HasUsage = d.Finish[:0], OpenAICounts{}, false
	d.Error, d.Failed = d.Error[:0], false
	d.Timings, d.Timed = OpenAITimings{}, false
	d.object, d.message = d.object[:0], d.message[:0]
	if err := d.scan.Document(chunk, d.member); err != nil {
		return err
	}
	d.Blank = d.blank && !d.role && len(d.Text) == 0
	if !d.Failed && string(d.object) == "error" { // TensorRT-LLM has no error member
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
	case "token_ids", "output_ids": // LMDeploy has the second name
		d.TokenIDs += s.Len()
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
	d.scan.Object(func(key []byte) {
		if string(key) == "function" {
			d.scan.Object(func(key []byte) {
				if k := string(key); k == "name" || k == "arguments" {
					d.text(OpenAIToolCallToken)
				}
			})
		}
	})
}

// text reads a string that was generated and says whether there was any.
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
				s.Told(&d.Usage.Cached, &d.Usage.TellsCached)
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
