// Package llamacpp is the shape of the native protocol of llama.cpp's server:
// the types of both ends.
package llamacpp

import (
	"encoding/json"

	"tacho/wire/openai"
)

// The paths of the protocol.
const (
	CompletionPath = "/completion"
	PropsPath      = "/props"
)

// A Request is the body of a request to CompletionPath. The prompt is a text
// or a list of token ids.
type Request struct {
	Prompt          json.RawMessage `json:"prompt"`
	NPredict        int             `json:"n_predict,omitempty"`
	MaxTokens       int             `json:"max_tokens,omitempty"` // the same under another name
	Temperature     *float64        `json:"temperature,omitempty"`
	Stop            openai.Stop     `json:"stop,omitempty"`
	IgnoreEOS       bool            `json:"ignore_eos,omitempty"`
	Stream          bool            `json:"stream,omitempty"`
	CachePrompt     *bool           `json:"cache_prompt,omitempty"` // nil is true
	ReturnTokens    bool            `json:"return_tokens,omitempty"`
	TimingsPerToken bool            `json:"timings_per_token,omitempty"`
}

// A Chunk is one event of a stream; the last has Stop set and is a Final.
type Chunk struct {
	Index           int      `json:"index"`
	Content         string   `json:"content"`
	Tokens          []int32  `json:"tokens"`
	Stop            bool     `json:"stop"`
	IDSlot          int      `json:"id_slot"`
	TokensPredicted int      `json:"tokens_predicted"`
	TokensEvaluated int      `json:"tokens_evaluated"`
	Timings         *Timings `json:"timings,omitempty"`
}

// A Final is the last event of a stream, and the whole answer.
type Final struct {
	Index              int            `json:"index"`
	Content            string         `json:"content"`
	Tokens             []int32        `json:"tokens"`
	IDSlot             int            `json:"id_slot"`
	Stop               bool           `json:"stop"`
	Model              string         `json:"model"`
	TokensPredicted    *int           `json:"tokens_predicted,omitempty"`
	TokensEvaluated    *int           `json:"tokens_evaluated,omitempty"`
	GenerationSettings map[string]any `json:"generation_settings"`
	Prompt             string         `json:"prompt"`
	HasNewLine         bool           `json:"has_new_line"`
	Truncated          bool           `json:"truncated"`
	StopType           string         `json:"stop_type"` // limit, eos, word or none
	StoppingWord       string         `json:"stopping_word"`
	TokensCached       int            `json:"tokens_cached"`
	Timings            *Timings       `json:"timings,omitempty"`
}

// Timings are the server's own measurements.
type Timings struct {
	CacheN              int     `json:"cache_n"`
	PromptN             int     `json:"prompt_n"`
	PromptMs            float64 `json:"prompt_ms"`
	PromptPerTokenMs    float64 `json:"prompt_per_token_ms"`
	PromptPerSecond     float64 `json:"prompt_per_second"`
	PredictedN          int     `json:"predicted_n"`
	PredictedMs         float64 `json:"predicted_ms"`
	PredictedPerTokenMs float64 `json:"predicted_per_token_ms"`
	PredictedPerSecond  float64 `json:"predicted_per_second"`
}

// An ErrorResponse is the body of a failure, and its event within a stream.
type ErrorResponse struct {
	Error Error `json:"error"`
}

// An Error is what went wrong.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type"`
}

// Props is the part of the answer of PropsPath that a client reads.
type Props struct {
	DefaultGenerationSettings struct {
		NCtx int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	TotalSlots int    `json:"total_slots"`
	ModelPath  string `json:"model_path"`
	ModelAlias string `json:"model_alias"`
	BuildInfo  string `json:"build_info"`
}
