package sim

import "tacho/wire"

// A geminiResponse is one event of a stream, or the whole answer.
type geminiResponse struct {
	Candidates    []geminiCandidate    `json:"candidates"`
	UsageMetadata *geminiUsageMetadata `json:"usageMetadata,omitempty"` // of all so far
	ModelVersion  string               `json:"modelVersion"`
}

// A geminiCandidate is one answer, or what an event adds to it.
type geminiCandidate struct {
	Content      *wire.GeminiContent `json:"content,omitempty"`
	FinishReason string              `json:"finishReason,omitempty"` // STOP, MAX_TOKENS, ... at the end
	Index        int                 `json:"index"`
}

// geminiUsageMetadata is the server's count of tokens. Thoughts are not among the
// candidates' tokens.
type geminiUsageMetadata struct {
	PromptTokenCount        int `json:"promptTokenCount"`
	CandidatesTokenCount    int `json:"candidatesTokenCount,omitempty"`
	ThoughtsTokenCount      int `json:"thoughtsTokenCount,omitempty"`
	CachedContentTokenCount int `json:"cachedContentTokenCount,omitempty"`
	TotalTokenCount         int `json:"totalTokenCount"`
}

// A geminiErrorResponse is the body of a failure, and its event within a stream.
type geminiErrorResponse struct {
	Error geminiError `json:"error"`
}

// A geminiError is what went wrong.
type geminiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
}
