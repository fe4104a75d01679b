// Package responses is the shape of OpenAI's responses protocol: the types of
// both ends.
package responses

import (
	"encoding/json"

	"tacho/wire/plain"
)

// Path is where requests go.
const Path = "/v1/responses"

// The types of event that a client has to know. Those whose name ends in
// delta bring tokens; the last four end a stream, which has no other end mark.
const (
	Created              = "response.created"
	InProgress           = "response.in_progress"
	OutputItemAdded      = "response.output_item.added"
	ContentPartAdded     = "response.content_part.added"
	OutputTextDelta      = "response.output_text.delta"
	OutputTextDone       = "response.output_text.done"
	ContentPartDone      = "response.content_part.done"
	OutputItemDone       = "response.output_item.done"
	ReasoningTextDelta   = "response.reasoning_text.delta"
	ReasoningSummary     = "response.reasoning_summary_text.delta"
	FunctionCallArgDelta = "response.function_call_arguments.delta"

	Completed  = "response.completed"
	Incomplete = "response.incomplete" // with reason MaxOutputTokens: as long as was asked for
	Failed     = "response.failed"
	ErrorEvent = "error"
)

// MaxOutputTokens is the reason for an incomplete response at its limit.
const MaxOutputTokens = "max_output_tokens"

// A Request is the body of a request.
type Request struct {
	Model           string   `json:"model,omitempty"`
	Input           Input    `json:"input"`
	Instructions    string   `json:"instructions,omitempty"`
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	Stream          bool     `json:"stream,omitempty"`
	Store           *bool    `json:"store,omitempty"`

	// vLLM's.
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`

	Tools      []Tool          `json:"tools,omitempty"`
	ToolChoice json.RawMessage `json:"tool_choice,omitempty"` // auto, none, required, or a ForcedTool
}

// A Tool is a function that the model may call.
type Tool struct {
	Type        string          `json:"type"` // function
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// A ForcedTool is the function that the model must call.
type ForcedTool struct {
	Type string `json:"type"` // function
	Name string `json:"name"`
}

// Input is a text, or a conversation.
type Input = plain.TextOr[Item]

// The types of item that are no message.
const (
	FunctionCall       = "function_call"
	FunctionCallOutput = "function_call_output"
)

// An Item is one entry of a conversation: a message, whose content is a text
// or parts; or, by its type, a call of a function or what that gave.
type Item struct {
	Type      string  `json:"type,omitempty"`
	Role      string  `json:"role"`
	Content   Content `json:"content"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments string  `json:"arguments,omitempty"`
	Output    string  `json:"output,omitempty"`
}

// MarshalJSON implements json.Marshaler: what is no message has no role.
func (i Item) MarshalJSON() ([]byte, error) {
	switch i.Type {
	case FunctionCall:
		return plain.Marshal(struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}{i.Type, i.CallID, i.Name, i.Arguments})
	case FunctionCallOutput:
		return plain.Marshal(struct {
			Type   string `json:"type"`
			CallID string `json:"call_id"`
			Output string `json:"output"`
		}{i.Type, i.CallID, i.Output})
	}
	type item Item // without this method
	return plain.Marshal(item(i))
}

// Content is what a message says.
type Content = plain.TextOr[Part]

// The types of part.
const (
	InputText  = "input_text"
	OutputText = "output_text" // in a message of the assistant
	InputImage = "input_image"
	InputAudio = "input_audio"
)

// A Part is one piece of the content of an item.
type Part struct {
	Type        string            `json:"type"`
	Text        string            `json:"text,omitempty"`
	ImageURL    string            `json:"image_url,omitempty"`
	InputAudio  *Audio            `json:"input_audio,omitempty"`
	Annotations []json.RawMessage `json:"annotations,omitempty"`
}

// Audio is a sound in base64.
type Audio struct {
	Data   string `json:"data"`
	Format string `json:"format"` // wav or mp3
}

// A Response is the whole answer, and part of the first and last events.
type Response struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"` // response
	CreatedAt         int64              `json:"created_at"`
	Status            string             `json:"status"` // in_progress, completed, incomplete or failed
	Model             string             `json:"model"`
	Output            []OutputItem       `json:"output"`
	Usage             *Usage             `json:"usage"`
	IncompleteDetails *IncompleteDetails `json:"incomplete_details"`
	Error             *Error             `json:"error"`
	Instructions      *string            `json:"instructions"`
	Metadata          map[string]string  `json:"metadata"`
	ParallelToolCalls bool               `json:"parallel_tool_calls"`
	ToolChoice        string             `json:"tool_choice"`
	Tools             []json.RawMessage  `json:"tools"`
	Temperature       float64            `json:"temperature"`
	TopP              float64            `json:"top_p"`
}

// An OutputItem is one thing the model produced.
type OutputItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"` // message
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []OutputPart `json:"content"`
}

// An OutputPart is one piece of an OutputItem.
type OutputPart struct {
	Type        string            `json:"type"` // output_text
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
}

// Usage is the server's count of tokens.
type Usage struct {
	InputTokens         int                 `json:"input_tokens"`
	InputTokensDetails  InputTokensDetails  `json:"input_tokens_details"`
	OutputTokens        int                 `json:"output_tokens"`
	OutputTokensDetails OutputTokensDetails `json:"output_tokens_details"`
	TotalTokens         int                 `json:"total_tokens"`
}

// InputTokensDetails is the part of the input that came from a cache.
type InputTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// OutputTokensDetails is the part of the output that was reasoning.
type OutputTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// IncompleteDetails say why a response is incomplete.
type IncompleteDetails struct {
	Reason string `json:"reason"`
}

// An Error is what went wrong.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// An Event is the data of one event of a stream. Which fields there are
// depends on the type.
type Event struct {
	Type           string      `json:"type"`
	SequenceNumber int         `json:"sequence_number"`
	Response       *Response   `json:"response,omitempty"`
	OutputIndex    *int        `json:"output_index,omitempty"`
	ContentIndex   *int        `json:"content_index,omitempty"`
	ItemID         string      `json:"item_id,omitempty"`
	Item           *OutputItem `json:"item,omitempty"`
	Part           *OutputPart `json:"part,omitempty"`
	Delta          *string     `json:"delta,omitempty"`
	Text           *string     `json:"text,omitempty"`
	Code           string      `json:"code,omitempty"`    // of an ErrorEvent
	Message        string      `json:"message,omitempty"` // of an ErrorEvent
}
