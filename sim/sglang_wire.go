package sim

import "github.com/tacho-bench/tacho/internal/wire"

// An sglangRequest is the body of a request to SGLangGeneratePath. Either Text or
// InputIDs is set.
type sglangRequest struct {
	Text           string                    `json:"text,omitempty"`
	InputIDs       []int32                   `json:"input_ids,omitempty"`
	SamplingParams wire.SGLangSamplingParams `json:"sampling_params"`
	Stream         bool                      `json:"stream,omitempty"`
	RequestID      string                    `json:"rid,omitempty"`
}

// sglangMetaInfo describes the answer so far.
type sglangMetaInfo struct {
	ID               string              `json:"id"`
	FinishReason     *sglangFinishReason `json:"finish_reason"`
	PromptTokens     int                 `json:"prompt_tokens"`
	WeightVersion    string              `json:"weight_version,omitempty"`
	CompletionTokens int                 `json:"completion_tokens"`
	CachedTokens     int                 `json:"cached_tokens"`
	ReasoningTokens  int                 `json:"reasoning_tokens"`
	NumRetractions   int                 `json:"num_retractions"`
	E2ELatency       float64             `json:"e2e_latency,omitempty"` // seconds, at the end
}

// An sglangFinishReason is stop, length, or abort, which is an error.
type sglangFinishReason struct {
	Type       string `json:"type"`
	Length     int    `json:"length,omitempty"`
	Matched    any    `json:"matched,omitempty"`
	Message    string `json:"message,omitempty"`
	StatusCode int    `json:"status_code,omitempty"`
}

// An sglangErrorResponse is the body of an error response, and the error event of a
// stream.
type sglangErrorResponse struct {
	Error sglangError `json:"error"`
}

// An sglangError describes an error.
type sglangError struct {
	Message   string `json:"message"`
	Type      string `json:"type"`
	Code      int    `json:"code"`
	Retryable bool   `json:"retryable"`
}

// sglangModelInfo is the answer of SGLangModelInfoPath.
type sglangModelInfo struct {
	ModelPath     string `json:"model_path"`
	TokenizerPath string `json:"tokenizer_path"`
	IsGeneration  bool   `json:"is_generation"`
}

// sglangServerInfo is the part of the answer of SGLangServerInfoPath that clients
// read.
type sglangServerInfo struct {
	ModelPath          string                `json:"model_path"`
	ServedModelName    string                `json:"served_model_name"`
	ContextLength      int                   `json:"context_length"`
	MaxRunningRequests int                   `json:"max_running_requests,omitempty"`
	Version            string                `json:"version"`
	InternalStates     []sglangInternalState `json:"internal_states"`
}

// An sglangInternalState is the state of one scheduler replica.
type sglangInternalState struct {
	LastGenThroughput float64 `json:"last_gen_throughput"`
}
