package sim

import "github.com/tacho-bench/tacho/internal/wire"

// A tgiGenerateRequest is the body of a request to TGIGenerateStreamPath and
// TGIGeneratePath.
type tgiGenerateRequest struct {
	Inputs     string             `json:"inputs"`
	Parameters wire.TGIParameters `json:"parameters"`
}

// tgiStreamDetails are the server's counts at the end of a stream.
type tgiStreamDetails struct {
	FinishReason    string `json:"finish_reason"` // length, eos_token or stop_sequence
	GeneratedTokens int    `json:"generated_tokens"`
	Seed            *int64 `json:"seed"`
	InputLength     int    `json:"input_length"`
}

// A tgiSimpleToken is one entry of the list returned by TGITokenizePath.
type tgiSimpleToken struct {
	ID    int32  `json:"id"`
	Text  string `json:"text"`
	Start int    `json:"start"`
	Stop  int    `json:"stop"`
}

// A tgiErrorResponse is the body of an error response, and the error event of a
// stream.
type tgiErrorResponse struct {
	Error     string `json:"error"`
	ErrorType string `json:"error_type"`
}
