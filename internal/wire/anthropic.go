package wire

import "encoding/json"

// Paths of Anthropic's messages protocol.
const (
	AnthropicMessagesPath    = "/v1/messages"
	AnthropicCountTokensPath = "/v1/messages/count_tokens"
)

// Event types. AnthropicContentBlockDelta carries tokens. AnthropicMessageStop ends a stream; the protocol uses no
// other end mark. AnthropicPing may appear anywhere.
const (
	AnthropicMessageStart      = "message_start"
	AnthropicPing              = "ping"
	AnthropicContentBlockStart = "content_block_start"
	AnthropicContentBlockDelta = "content_block_delta"
	AnthropicContentBlockStop  = "content_block_stop"
	AnthropicMessageDelta      = "message_delta"
	AnthropicMessageStop       = "message_stop"
)

// Types of deltas with tokens.
const (
	AnthropicTextDelta      = "text_delta"
	AnthropicThinkingDelta  = "thinking_delta"
	AnthropicInputJSONDelta = "input_json_delta"
)

// An AnthropicRequest is the body of a request. MaxTokens is required.
type AnthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	Messages    []AnthropicMessage `json:"messages"`
	System      *AnthropicContent  `json:"system,omitempty"`
	Stream      bool               `json:"stream,omitempty"`
	Temperature *float64           `json:"temperature,omitempty"`
	TopP        *float64           `json:"top_p,omitempty"`
	TopK        *int               `json:"top_k,omitempty"`

	StopSequences []string `json:"stop_sequences,omitempty"`

	Tools      []AnthropicTool      `json:"tools,omitempty"`
	ToolChoice *AnthropicToolChoice `json:"tool_choice,omitempty"`
}

// An AnthropicTool is a function the model may call.
type AnthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// An AnthropicToolChoice selects whether the model must call a tool.
type AnthropicToolChoice struct {
	Type string `json:"type"` // auto, any, none or tool
	Name string `json:"name,omitempty"`
}

// An AnthropicMessage is one entry of a conversation.
type AnthropicMessage struct {
	Role    string           `json:"role"`
	Content AnthropicContent `json:"content"`
}

// AnthropicContent is the content of a message.
type AnthropicContent = TextOr[AnthropicBlock]

// Block types.
const (
	AnthropicTextBlock       = "text"
	AnthropicImageBlock      = "image"
	AnthropicToolUseBlock    = "tool_use"
	AnthropicToolResultBlock = "tool_result"
)

// An AnthropicBlock is one piece of content. The fields used depend on the type.
type AnthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text,omitempty"`
	Source    *AnthropicSource `json:"source,omitempty"`      // image
	ID        string           `json:"id,omitempty"`          // tool use
	Name      string           `json:"name,omitempty"`        // tool use
	Input     json.RawMessage  `json:"input,omitempty"`       // tool use
	ToolUseID string           `json:"tool_use_id,omitempty"` // tool result
	Content   string           `json:"content,omitempty"`     // tool result
}

// An AnthropicSource is an image, in base64 or as a URL.
type AnthropicSource struct {
	Type      string `json:"type"` // base64 or url
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// MarshalJSON implements json.Marshaler. A text block includes its text even if the text is empty.
func (b AnthropicBlock) MarshalJSON() ([]byte, error) {
	if b.Type == AnthropicTextBlock {
		return Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{b.Type, b.Text})
	}
	type block AnthropicBlock // without this method
	return Marshal(block(b))
}

// An AnthropicCountTokensResponse is the response of AnthropicCountTokensPath.
type AnthropicCountTokensResponse struct {
	InputTokens int `json:"input_tokens"`
}
