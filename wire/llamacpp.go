package wire

import "encoding/json"

// The paths of the native protocol of llama.cpp's server.
const (
	LlamaCppCompletionPath = "/completion"
	LlamaCppPropsPath      = "/props"
)

// A LlamaCppRequest is the body of a request to LlamaCppCompletionPath. The prompt is a text
// or a list of token ids.
type LlamaCppRequest struct {
	Prompt          json.RawMessage `json:"prompt"`
	NPredict        int             `json:"n_predict,omitempty"`
	MaxTokens       int             `json:"max_tokens,omitempty"` // the same under another name
	Temperature     *float64        `json:"temperature,omitempty"`
	Stop            OpenAIStop      `json:"stop,omitempty"`
	IgnoreEOS       bool            `json:"ignore_eos,omitempty"`
	Stream          bool            `json:"stream,omitempty"`
	CachePrompt     *bool           `json:"cache_prompt,omitempty"` // nil is true
	ReturnTokens    bool            `json:"return_tokens,omitempty"`
	TimingsPerToken bool            `json:"timings_per_token,omitempty"`
}

// LlamaCppProps is the part of the answer of LlamaCppPropsPath that a client reads.
type LlamaCppProps struct {
	DefaultGenerationSettings struct {
		NCtx int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	TotalSlots int    `json:"total_slots"`
	ModelPath  string `json:"model_path"`
	ModelAlias string `json:"model_alias"`
	BuildInfo  string `json:"build_info"`
}
