package sim

import "encoding/json"

// responsesMaxOutputTokens is the reason for an incomplete response at its limit.
const responsesMaxOutputTokens = "max_output_tokens"

// A responsesResponse is the whole answer, and part of the first and last events.
type responsesResponse struct {
	ID                string                      `json:"id"`
	Object            string                      `json:"object"` // response
	CreatedAt         int64                       `json:"created_at"`
	Status            string                      `json:"status"` // in_progress, completed, incomplete or failed
	Model             string                      `json:"model"`
	Output            []responsesOutputItem       `json:"output"`
	Usage             *responsesUsage             `json:"usage"`
	IncompleteDetails *responsesIncompleteDetails `json:"incomplete_details"`
	Error             *responsesError             `json:"error"`
	Instructions      *string                     `json:"instructions"`
	Metadata          map[string]string           `json:"metadata"`
	ParallelToolCalls bool                        `json:"parallel_tool_calls"`
	ToolChoice        string                      `json:"tool_choice"`
	Tools             []json.RawMessage           `json:"tools"`
	Temperature       float64                     `json:"temperature"`
	TopP              float64                     `json:"top_p"`
}

// A responsesOutputItem is one item of the output.
type responsesOutputItem struct {
	ID      string                `json:"id"`
	Type    string                `json:"type"` // message
	Status  string                `json:"status"`
	Role    string                `json:"role"`
	Content []responsesOutputPart `json:"content"`
}

// A responsesOutputPart is one piece of a responsesOutputItem.
type responsesOutputPart struct {
	Type        string            `json:"type"` // output_text
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
}

// responsesUsage is the server's token count.
type responsesUsage struct {
	InputTokens         int                          `json:"input_tokens"`
	InputTokensDetails  responsesInputTokensDetails  `json:"input_tokens_details"`
	OutputTokens        int                          `json:"output_tokens"`
	OutputTokensDetails responsesOutputTokensDetails `json:"output_tokens_details"`
	TotalTokens         int                          `json:"total_tokens"`
}

// responsesInputTokensDetails is the part of the input found in a cache.
type responsesInputTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// responsesOutputTokensDetails is the reasoning part of the output.
type responsesOutputTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// responsesIncompleteDetails is the reason for an incomplete response.
type responsesIncompleteDetails struct {
	Reason string `json:"reason"`
}

// A responsesError describes an error.
type responsesError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A responsesEvent is the data of one event of a stream. The type determines which
// fields are set.
type responsesEvent struct {
	Type           string               `json:"type"`
	SequenceNumber int                  `json:"sequence_number"`
	Response       *responsesResponse   `json:"response,omitempty"`
	OutputIndex    *int                 `json:"output_index,omitempty"`
	ContentIndex   *int                 `json:"content_index,omitempty"`
	ItemID         string               `json:"item_id,omitempty"`
	Item           *responsesOutputItem `json:"item,omitempty"`
	Part           *responsesOutputPart `json:"part,omitempty"`
	Delta          *string              `json:"delta,omitempty"`
	Text           *string              `json:"text,omitempty"`
	Code           string               `json:"code,omitempty"`    // of an ErrorEvent
	Message        string               `json:"message,omitempty"` // of an ErrorEvent
}
