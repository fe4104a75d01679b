package wire

// An MIIRequest is the body of a request of DeepSpeed-MII's native protocol. The protocol cannot ignore the
// end-of-sequence token; instead, set the minimum number of tokens to the maximum.
type MIIRequest struct {
	Prompt      string   `json:"prompt"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	Stream      bool     `json:"stream,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
}
