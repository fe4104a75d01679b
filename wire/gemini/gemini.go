// Package gemini is the shape of Gemini's content protocol: what a client
// sends and asks, and what a server says.
package gemini

import (
	"encoding/json"

	"tacho/wire/plain"
)

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
	Tools             []Tool           `json:"tools,omitempty"`
	ToolConfig        *ToolConfig      `json:"toolConfig,omitempty"`
}

// A Tool is a list of functions that the model may call.
type Tool struct {
	FunctionDeclarations []FunctionDeclaration `json:"functionDeclarations"`
}

// A FunctionDeclaration is one function.
type FunctionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ToolConfig says whether the model must call a function.
type ToolConfig struct {
	FunctionCallingConfig FunctionCallingConfig `json:"functionCallingConfig"`
}

// FunctionCallingConfig is the one part of a ToolConfig.
type FunctionCallingConfig struct {
	Mode                 string   `json:"mode"` // AUTO, ANY or NONE
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

// Content is one entry of a conversation. The model's role is "model".
type Content struct {
	Role  string `json:"role,omitempty"`
	Parts []Part `json:"parts"`
}

// A Part is one piece of Content: a text, or one of the others.
type Part struct {
	Text             string            `json:"text,omitempty"`
	InlineData       *Blob             `json:"inlineData,omitempty"`
	FileData         *File             `json:"fileData,omitempty"`
	FunctionCall     *FunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *FunctionResponse `json:"functionResponse,omitempty"`
}

// A Blob is an image, audio or a video, in base64.
type Blob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

// A File is the same at an address.
type File struct {
	MIMEType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

// A FunctionCall is the model's call of a function.
type FunctionCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// A FunctionResponse is what a function gave.
type FunctionResponse struct {
	Name     string           `json:"name"`
	Response FunctionResponds `json:"response"`
}

// FunctionResponds holds the result of a function: the protocol wants an
// object.
type FunctionResponds struct {
	Result string `json:"result"`
}

// MarshalJSON implements json.Marshaler: a part that is nothing else is a
// text, even if it is empty.
func (p Part) MarshalJSON() ([]byte, error) {
	if p == (Part{Text: p.Text}) {
		return plain.Marshal(struct {
			Text string `json:"text"`
		}{p.Text})
	}
	type part Part // without this method
	return plain.Marshal(part(p))
}

// GenerationConfig says how tokens are chosen and when to stop.
type GenerationConfig struct {
	MaxOutputTokens  int      `json:"maxOutputTokens,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"topP,omitempty"`
	TopK             *int     `json:"topK,omitempty"`
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	PresencePenalty  *float64 `json:"presencePenalty,omitempty"`
	StopSequences    []string `json:"stopSequences,omitempty"`
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

// A Response is one event of a stream, or the whole answer.
type Response struct {
	Candidates    []Candidate    `json:"candidates"`
	UsageMetadata *UsageMetadata `json:"usageMetadata,omitempty"` // of all so far
	ModelVersion  string         `json:"modelVersion"`
}

// A Candidate is one answer, or what an event adds to it.
type Candidate struct {
	Content      *Content `json:"content,omitempty"`
	FinishReason string   `json:"finishReason,omitempty"` // STOP, MAX_TOKENS, ... at the end
	Index        int      `json:"index"`
}

// UsageMetadata is the server's count of tokens. Thoughts are not among the
// candidates' tokens.
type UsageMetadata struct {
	PromptTokenCount        int `json:"promptTokenCount"`
	CandidatesTokenCount    int `json:"candidatesTokenCount,omitempty"`
	ThoughtsTokenCount      int `json:"thoughtsTokenCount,omitempty"`
	CachedContentTokenCount int `json:"cachedContentTokenCount,omitempty"`
	TotalTokenCount         int `json:"totalTokenCount"`
}

// An ErrorResponse is the body of a failure, and its event within a stream.
type ErrorResponse struct {
	Error Error `json:"error"`
}

// An Error is what went wrong.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
}
