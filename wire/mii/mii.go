// Package mii is the shape of DeepSpeed-MII's native protocol: the types of
// both ends.
package mii

// GeneratePath is where requests go.
const GeneratePath = "/generate"

// Done is the payload that ends a stream.
const Done = "[DONE]"

// A Request is the body of a request. There is no way to ignore the end of a
// text but to ask for as many tokens at least as at most.
type Request struct {
	Prompt      string   `json:"prompt"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	Stream      bool     `json:"stream,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
}

// An ErrorResponse is the body of a failure.
type ErrorResponse struct {
	Error string `json:"error"`
}
