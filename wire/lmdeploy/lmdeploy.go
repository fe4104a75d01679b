// Package lmdeploy is the shape of LMDeploy's native protocol: the types of
// both ends.
package lmdeploy

import "tacho/wire/openai"

// The paths of the protocol.
const (
	GeneratePath = "/generate"
	EncodePath   = "/v1/encode"
)

// Schema is the name that the server's own description of itself has for a
// Request: older servers have no GeneratePath, and no such name.
const Schema = "GenerateReqInput"

// A Request is the body of a request to GeneratePath. The input is one of
// Prompt and InputIDs.
type Request struct {
	Prompt            string   `json:"prompt,omitempty"`
	InputIDs          []int32  `json:"input_ids,omitempty"`
	MaxTokens         int      `json:"max_tokens,omitempty"`
	Stream            bool     `json:"stream,omitempty"`
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`

	Stop         openai.Stop `json:"stop,omitempty"`
	StopTokenIDs []int32     `json:"stop_token_ids,omitempty"`
	IncludeStop  bool        `json:"include_stop_str_in_output,omitempty"`
}

// MetaInfo is the server's account of an answer so far.
type MetaInfo struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	FinishReason     *FinishReason `json:"finish_reason"`
}

// A FinishReason is why an answer ended: stop, length, abort or error.
type FinishReason struct {
	Type string `json:"type"`
}

// An EncodeRequest is the body of a request to EncodePath.
type EncodeRequest struct {
	Input        string `json:"input"`
	DoPreprocess bool   `json:"do_preprocess"` // put it into the chat template
	AddBOS       bool   `json:"add_bos"`       // with the token that begins a text
}

// An EncodeResponse is its answer.
type EncodeResponse struct {
	InputIDs []int32 `json:"input_ids"`
	Length   int     `json:"length"`
}
