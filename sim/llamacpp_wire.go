package sim

// A llamacppChunk is one event of a stream. The last event has Stop set and is a
// llamacppFinal.
type llamacppChunk struct {
	Index           int              `json:"index"`
	Content         string           `json:"content"`
	Tokens          []int32          `json:"tokens"`
	Stop            bool             `json:"stop"`
	IDSlot          int              `json:"id_slot"`
	TokensPredicted int              `json:"tokens_predicted"`
	TokensEvaluated int              `json:"tokens_evaluated"`
	Timings         *llamacppTimings `json:"timings,omitempty"`
}

// A llamacppFinal is the last event of a stream, or the whole answer.
type llamacppFinal struct {
	Index              int              `json:"index"`
	Content            string           `json:"content"`
	Tokens             []int32          `json:"tokens"`
	IDSlot             int              `json:"id_slot"`
	Stop               bool             `json:"stop"`
	Model              string           `json:"model"`
	TokensPredicted    *int             `json:"tokens_predicted,omitempty"`
	TokensEvaluated    *int             `json:"tokens_evaluated,omitempty"`
	GenerationSettings map[string]any   `json:"generation_settings"`
	Prompt             string           `json:"prompt"`
	HasNewLine         bool             `json:"has_new_line"`
	Truncated          bool             `json:"truncated"`
	StopType           string           `json:"stop_type"` // limit, eos, word or none
	StoppingWord       string           `json:"stopping_word"`
	TokensCached       int              `json:"tokens_cached"`
	Timings            *llamacppTimings `json:"timings,omitempty"`
}

// llamacppTimings are the server's measurements.
type llamacppTimings struct {
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

// A llamacppErrorResponse is the body of an error response, and the error event of
// a stream.
type llamacppErrorResponse struct {
	Error llamacppError `json:"error"`
}

// A llamacppError describes an error.
type llamacppError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type"`
}
