// Package gemini is the shape of Gemini's content protocol: what a client
// sends and asks.
package gemini

// The paths of the protocol; {model} stands for the model's name. Without
// alt=sse a stream is one JSON list.
const (
	StreamPath      = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
	CountTokensPath = "/v1beta/models/{model}:countTokens"
	ModelsPath      = "/v1beta/models"
)

// KeyHeader is the header of the API key.
const KeyHeader = "X-Goog-Api-Key"

// A Request is the body of a request to StreamPath.
type Request struct {
	Contents          []Content        `json:"contents"`
	SystemInstruction *Content         `json:"systemInstruction,omitempty"`
	GenerationConfig  GenerationConfig `json:"generationConfig"`
}

// Content is one entry of a conversation. The model's role is "model".
type Content struct {
	Role  string `json:"role,omitempty"`
	Parts []Part `json:"parts"`
}

// A Part is one piece of Content.
type Part struct {
	Text string `json:"text"`
}

// GenerationConfig says how tokens are chosen and when to stop.
type GenerationConfig struct {
	MaxOutputTokens  int      `json:"maxOutputTokens,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"topP,omitempty"`
	TopK             *int     `json:"topK,omitempty"`
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	PresencePenalty  *float64 `json:"presencePenalty,omitempty"`
}

// A CountTokensRequest is the body of a request to CountTokensPath.
type CountTokensRequest struct {
	Contents []Content `json:"contents"`
}

// A CountTokensResponse is its answer.
type CountTokensResponse struct {
	TotalTokens int `json:"totalTokens"`
}

// A ModelList is the answer of ModelsPath.
type ModelList struct {
	Models []Model `json:"models"`
}

// A Model is one entry of a ModelList. Its name begins with "models/".
type Model struct {
	Name             string `json:"name"`
	InputTokenLimit  int    `json:"inputTokenLimit"`
	OutputTokenLimit int    `json:"outputTokenLimit"`
}
