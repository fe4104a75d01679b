package sim

import "github.com/tacho-bench/tacho/internal/wire"

// An anthropicResponse is the whole answer, and part of the first event of a
// stream.
type anthropicResponse struct {
	ID           string                `json:"id"`
	Type         string                `json:"type"` // message
	Role         string                `json:"role"`
	Model        string                `json:"model"`
	Content      []wire.AnthropicBlock `json:"content"`
	StopReason   *string               `json:"stop_reason"` // end_turn, max_tokens, stop_sequence, tool_use, ...
	StopSequence *string               `json:"stop_sequence"`
	Usage        *anthropicUsage       `json:"usage,omitempty"`
}

// anthropicUsage is the server's token count. The input is the sum of its three
// parts. In an AnthropicMessageDelta the output is cumulative.
type anthropicUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// An anthropicEvent is the data of one event of a stream. The type determines which
// fields are set.
type anthropicEvent struct {
	Type         string               `json:"type"`
	Message      *anthropicResponse   `json:"message,omitempty"`
	Index        *int                 `json:"index,omitempty"`
	ContentBlock *wire.AnthropicBlock `json:"content_block,omitempty"`
	Delta        *anthropicDelta      `json:"delta,omitempty"`
	Usage        *anthropicUsage      `json:"usage,omitempty"`
	Error        *anthropicError      `json:"error,omitempty"`
}

// An anthropicDelta is the payload of an AnthropicContentBlockDelta or an
// AnthropicMessageDelta.
type anthropicDelta struct {
	Type         string  `json:"type,omitempty"`
	Text         *string `json:"text,omitempty"`
	Thinking     *string `json:"thinking,omitempty"`
	PartialJSON  *string `json:"partial_json,omitempty"`
	StopReason   *string `json:"stop_reason,omitempty"`
	StopSequence *string `json:"stop_sequence,omitempty"`
}

// An anthropicErrorResponse is the body of an error response.
type anthropicErrorResponse struct {
	Type  string         `json:"type"` // error
	Error anthropicError `json:"error"`
}

// An anthropicError describes an error.
type anthropicError struct {
	Type    string `json:"type"` // overloaded_error, invalid_request_error, ...
	Message string `json:"message"`
}
