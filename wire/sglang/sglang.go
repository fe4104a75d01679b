// Package sglang is the shape of SGLang's native protocol: the types of both
// ends.
package sglang

import "tacho/wire/openai"

// The paths of the protocol.
const (
	GeneratePath   = "/generate"
	FlushCachePath = "/flush_cache"
	ServerInfoPath = "/server_info"
	ModelInfoPath  = "/model_info"
)

// Done is the payload that ends a stream.
const Done = "[DONE]"

// A Request is the body of a request to GeneratePath. The input is one of
// Text and InputIDs.
type Request struct {
	Text           string         `json:"text,omitempty"`
	InputIDs       []int32        `json:"input_ids,omitempty"`
	SamplingParams SamplingParams `json:"sampling_params"`
	Stream         bool           `json:"stream,omitempty"`
	RequestID      string         `json:"rid,omitempty"`
}

// SamplingParams say how tokens are chosen and when to stop.
type SamplingParams struct {
	MaxNewTokens   int      `json:"max_new_tokens,omitempty"`
	MinNewTokens   int      `json:"min_new_tokens,omitempty"`
	IgnoreEOS      bool     `json:"ignore_eos,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"`
	TopP           *float64 `json:"top_p,omitempty"`
	TopK           *int     `json:"top_k,omitempty"`
	StreamInterval int      `json:"stream_interval,omitempty"`

	Stop         openai.Stop `json:"stop,omitempty"`
	StopTokenIDs []int32     `json:"stop_token_ids,omitempty"`
}

// MetaInfo is the server's account of an answer so far.
type MetaInfo struct {
	ID               string        `json:"id"`
	FinishReason     *FinishReason `json:"finish_reason"`
	PromptTokens     int           `json:"prompt_tokens"`
	WeightVersion    string        `json:"weight_version,omitempty"`
	CompletionTokens int           `json:"completion_tokens"`
	CachedTokens     int           `json:"cached_tokens"`
	ReasoningTokens  int           `json:"reasoning_tokens"`
	NumRetractions   int           `json:"num_retractions"`
	E2ELatency       float64       `json:"e2e_latency,omitempty"` // seconds, at the end
}

// A FinishReason is why an answer ended: stop, length, or abort, which is an
// error.
type FinishReason struct {
	Type       string `json:"type"`
	Length     int    `json:"length,omitempty"`
	Matched    any    `json:"matched,omitempty"`
	Message    string `json:"message,omitempty"`
	StatusCode int    `json:"status_code,omitempty"`
}

// An ErrorResponse is the body of a failure, and its event within a stream.
type ErrorResponse struct {
	Error Error `json:"error"`
}

// An Error is what went wrong.
type Error struct {
	Message   string `json:"message"`
	Type      string `json:"type"`
	Code      int    `json:"code"`
	Retryable bool   `json:"retryable"`
}

// ModelInfo is the answer of ModelInfoPath.
type ModelInfo struct {
	ModelPath     string `json:"model_path"`
	TokenizerPath string `json:"tokenizer_path"`
	IsGeneration  bool   `json:"is_generation"`
}

// ServerInfo is the part of the answer of ServerInfoPath that a client reads.
type ServerInfo struct {
	ModelPath          string          `json:"model_path"`
	ServedModelName    string          `json:"served_model_name"`
	ContextLength      int             `json:"context_length"`
	MaxRunningRequests int             `json:"max_running_requests,omitempty"`
	Version            string          `json:"version"`
	InternalStates     []InternalState `json:"internal_states"`
}

// An InternalState is what one replica of the scheduler is doing.
type InternalState struct {
	LastGenThroughput float64 `json:"last_gen_throughput"`
}
