package sim

// lmdeployMetaInfo describes the answer so far.
type lmdeployMetaInfo struct {
	PromptTokens     int                   `json:"prompt_tokens"`
	CompletionTokens int                   `json:"completion_tokens"`
	FinishReason     *lmdeployFinishReason `json:"finish_reason"`
}

// An lmdeployFinishReason is stop, length, abort or error.
type lmdeployFinishReason struct {
	Type string `json:"type"`
}
