package sim

import "github.com/tacho-bench/tacho/internal/wire"

// A geminiResponse is one event of a stream, or the whole answer.
type geminiResponse struct {
	Candidates    []geminiCandidate    `json:"candidates"`
	UsageMetadata *geminiUsageMetadata `json:"usageMetadata,omitempty"` // cumulative
	ModelVersion  string               `json:"modelVersion"`
}

// A geminiCandidate is one answer, or the part that an event adds.
type geminiCandidate struct {
	Content      *wire.GeminiContent `json:"content,omitempty"`
	FinishReason string              `json:"finishReason,omitempty"` // STOP, MAX_TOKENS, ... at the end
	Index        int                 `json:"index"`
}

// geminiUsageMetadata is the server's token count. Candidate tokens do not include
// thoughts.
type geminiUsageMetadata struct {
	PromptTokenCount        int `json:"promptTokenCount"`
	CandidatesTokenCount    int `json:"candidatesTokenCount,omitempty"`
	ThoughtsTokenCount      int `json:"thoughtsTokenCount,omitempty"`
	CachedContentTokenCount int `json:"cachedContentTokenCount,omitempty"`
	TotalTokenCount         int `json:"totalTokenCount"`
}

// A geminiErrorResponse is the body of an error response, and the error event of a
// stream.
type geminiErrorResponse struct {
	Error geminiError `json:"error"`
}

// A geminiError describes an error.
type geminiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
}
