// Package anthropic is the shape of Anthropic's messages protocol: the types
// of both ends.
package anthropic

import (
	"encoding/json"

	"tacho/wire/plain"
)

// The paths of the protocol.
const (
	MessagesPath    = "/v1/messages"
	CountTokensPath = "/v1/messages/count_tokens"
)

// Version is the value of the header anthropic-version.
const Version = "2023-06-01"

// The types of event. ContentBlockDelta brings tokens; MessageStop ends a
// stream, which has no other end mark; Ping may come anywhere.
const (
	MessageStart      = "message_start"
	Ping              = "ping"
	ContentBlockStart = "content_block_start"
	ContentBlockDelta = "content_block_delta"
	ContentBlockStop  = "content_block_stop"
	MessageDelta      = "message_delta"
	MessageStop       = "message_stop"
)

// The types of delta that bring tokens.
const (
	TextDelta      = "text_delta"
	ThinkingDelta  = "thinking_delta"
	InputJSONDelta = "input_json_delta"
)

// A Request is the body of a request. MaxTokens is required.
type Request struct {
	Model       string    `json:"model"`
	MaxTokens   int       `json:"max_tokens"`
	Messages    []Message `json:"messages"`
	System      *Content  `json:"system,omitempty"`
	Stream      bool      `json:"stream,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"top_p,omitempty"`
	TopK        *int      `json:"top_k,omitempty"`

	StopSequences []string `json:"stop_sequences,omitempty"`

	Tools      []Tool      `json:"tools,omitempty"`
	ToolChoice *ToolChoice `json:"tool_choice,omitempty"`
}

// A Tool is a function that the model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// A ToolChoice says whether the model must call a tool.
type ToolChoice struct {
	Type string `json:"type"` // auto, any, none or tool
	Name string `json:"name,omitempty"`
}

// A Message is one entry of a conversation.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// Content is what a message says.
type Content = plain.TextOr[Block]

// The types of block.
const (
	TextBlock       = "text"
	ImageBlock      = "image"
	ToolUseBlock    = "tool_use"
	ToolResultBlock = "tool_result"
)

// A Block is one piece of content. Which fields there are depends on the type.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *Source         `json:"source,omitempty"`      // of an image
	ID        string          `json:"id,omitempty"`          // of a tool's use
	Name      string          `json:"name,omitempty"`        // of a tool's use
	Input     json.RawMessage `json:"input,omitempty"`       // of a tool's use
	ToolUseID string          `json:"tool_use_id,omitempty"` // of a tool's result
	Content   string          `json:"content,omitempty"`     // of a tool's result
}

// A Source is where an image is: in base64, or at an address.
type Source struct {
	Type      string `json:"type"` // base64 or url
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// MarshalJSON implements json.Marshaler: a text is there even if it is empty.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.Type == TextBlock {
		return plain.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{b.Type, b.Text})
	}
	type block Block // without this method
	return plain.Marshal(block(b))
}

// A Response is the whole answer, and part of the first event of a stream.
type Response struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"` // message
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []Block `json:"content"`
	StopReason   *string `json:"stop_reason"` // end_turn, max_tokens, stop_sequence, tool_use, ...
	StopSequence *string `json:"stop_sequence"`
	Usage        *Usage  `json:"usage,omitempty"`
}

// Usage is the server's count of tokens. The input is the sum of its three
// parts; in a MessageDelta the output is cumulative.
type Usage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// An Event is the data of one event of a stream. Which fields there are
// depends on the type.
type Event struct {
	Type         string    `json:"type"`
	Message      *Response `json:"message,omitempty"`
	Index        *int      `json:"index,omitempty"`
	ContentBlock *Block    `json:"content_block,omitempty"`
	Delta        *Delta    `json:"delta,omitempty"`
	Usage        *Usage    `json:"usage,omitempty"`
	Error        *Error    `json:"error,omitempty"`
}

// A Delta is what a ContentBlockDelta or a MessageDelta adds.
type Delta struct {
	Type         string  `json:"type,omitempty"`
	Text         *string `json:"text,omitempty"`
	Thinking     *string `json:"thinking,omitempty"`
	PartialJSON  *string `json:"partial_json,omitempty"`
	StopReason   *string `json:"stop_reason,omitempty"`
	StopSequence *string `json:"stop_sequence,omitempty"`
}

// An ErrorResponse is the body of a failure.
type ErrorResponse struct {
	Type  string `json:"type"` // error
	Error Error  `json:"error"`
}

// An Error is what went wrong.
type Error struct {
	Type    string `json:"type"` // overloaded_error, invalid_request_error, ...
	Message string `json:"message"`
}

// A CountTokensResponse is the answer of CountTokensPath.
type CountTokensResponse struct {
	InputTokens int `json:"input_tokens"`
}
