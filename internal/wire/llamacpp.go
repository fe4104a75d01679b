package wire

import "encoding/json"

// Paths of the native protocol of llama.cpp's server.
const (
	LlamaCppCompletionPath = "/completion"
	LlamaCppPropsPath      = "/props"
)

// A LlamaCppRequest is the body of a request to LlamaCppCompletionPath. Prompt is a text or a list of token ids.
type LlamaCppRequest struct {
	Prompt          json.RawMessage `json:"prompt"`
	NPredict        int             `json:"n_predict,omitempty"`
	MaxTokens       int             `json:"max_tokens,omitempty"` // alias of n_predict
	Temperature     *float64        `json:"temperature,omitempty"`
	Stop            OpenAIStop      `json:"stop,omitempty"`
	IgnoreEOS       bool            `json:"ignore_eos,omitempty"`
	Stream          bool            `json:"stream,omitempty"`
	CachePrompt     *bool           `json:"cache_prompt,omitempty"` // nil means true
	ReturnTokens    bool            `json:"return_tokens,omitempty"`
	TimingsPerToken bool            `json:"timings_per_token,omitempty"`
}

// LlamaCppProps is the part of the response of LlamaCppPropsPath used by the client.
type LlamaCppProps struct {
	DefaultGenerationSettings struct {
		NCtx int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	TotalSlots int    `json:"total_slots"`
	ModelPath  string `json:"model_path"`
	ModelAlias string `json:"model_alias"`
	BuildInfo  string `json:"build_info"`
}
