package wire

import "encoding/json"

// ResponsesPath is the path of OpenAI's responses protocol.
const ResponsesPath = "/v1/responses"

// Event types used by the client. Types ending in delta carry tokens. The last four end a stream; the protocol uses
// no other end mark.
const (
	ResponsesCreated              = "response.created"
	ResponsesInProgress           = "response.in_progress"
	ResponsesOutputItemAdded      = "response.output_item.added"
	ResponsesContentPartAdded     = "response.content_part.added"
	ResponsesOutputTextDelta      = "response.output_text.delta"
	ResponsesOutputTextDone       = "response.output_text.done"
	ResponsesContentPartDone      = "response.content_part.done"
	ResponsesOutputItemDone       = "response.output_item.done"
	ResponsesReasoningTextDelta   = "response.reasoning_text.delta"
	ResponsesReasoningSummary     = "response.reasoning_summary_text.delta"
	ResponsesFunctionCallArgDelta = "response.function_call_arguments.delta"

	ResponsesCompleted  = "response.completed"
	ResponsesIncomplete = "response.incomplete" // with reason MaxOutputTokens, the answer reached the requested length
	ResponsesFailed     = "response.failed"
	ResponsesErrorEvent = "error"
)

// A ResponsesRequest is the body of a request.
type ResponsesRequest struct {
	Model           string         `json:"model,omitempty"`
	Input           ResponsesInput `json:"input"`
	Instructions    string         `json:"instructions,omitempty"`
	MaxOutputTokens int            `json:"max_output_tokens,omitempty"`
	Temperature     *float64       `json:"temperature,omitempty"`
	TopP            *float64       `json:"top_p,omitempty"`
	Stream          bool           `json:"stream,omitempty"`
	Store           *bool          `json:"store,omitempty"`

	// Extensions of vLLM.
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`

	Tools      []ResponsesTool `json:"tools,omitempty"`
	ToolChoice json.RawMessage `json:"tool_choice,omitempty"` // auto, none, required, or a ForcedTool
}

// A ResponsesTool is a function the model may call.
type ResponsesTool struct {
	Type        string          `json:"type"` // function
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ResponsesInput is a text or a conversation.
type ResponsesInput = TextOr[ResponsesItem]

// Types of items other than messages.
const (
	ResponsesFunctionCall       = "function_call"
	ResponsesFunctionCallOutput = "function_call_output"
)

// A ResponsesItem is one entry of a conversation. Depending on Type, the item is a message, a function call or the
// result of a function call. The content of a message is a text or parts.
type ResponsesItem struct {
	Type      string           `json:"type,omitempty"`
	Role      string           `json:"role"`
	Content   ResponsesContent `json:"content"`
	CallID    string           `json:"call_id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Arguments string           `json:"arguments,omitempty"`
	Output    string           `json:"output,omitempty"`
}

// MarshalJSON implements json.Marshaler. Only messages include a role.
func (i ResponsesItem) MarshalJSON() ([]byte, error) {
	switch i.Type {
	case ResponsesFunctionCall:
		return Marshal(struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}{i.Type, i.CallID, i.Name, i.Arguments})
	case ResponsesFunctionCallOutput:
		return Marshal(struct {
			Type   string `json:"type"`
			CallID string `json:"call_id"`
			Output string `json:"output"`
		}{i.Type, i.CallID, i.Output})
	}
	type item ResponsesItem // without this method
	return Marshal(item(i))
}

// ResponsesContent is the content of a message.
type ResponsesContent = TextOr[ResponsesPart]

// A ResponsesPart is one piece of the content of an item.
type ResponsesPart struct {
	Type        string            `json:"type"`
	Text        string            `json:"text,omitempty"`
	ImageURL    string            `json:"image_url,omitempty"`
	InputAudio  *ResponsesAudio   `json:"input_audio,omitempty"`
	Annotations []json.RawMessage `json:"annotations,omitempty"`
}

// ResponsesAudio is an audio clip in base64.
type ResponsesAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"` // wav or mp3
}
