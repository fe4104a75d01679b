// Package triton is the shape of Triton's generate extension, for the
// TensorRT-LLM and the vLLM backend: the types of both ends.
package triton

import "tacho/wire/openai"

// StreamPath and GeneratePath are where requests for a model go.
func StreamPath(model string) string { return "/v2/models/" + model + "/generate_stream" }

// GeneratePath is where requests for a whole answer go.
func GeneratePath(model string) string { return "/v2/models/" + model + "/generate" }

// The paths of questions.
const (
	ServerPath = "/v2"
	IndexPath  = "/v2/repository/index"
)

// ConfigPath is where a model's configuration is.
func ConfigPath(model string) string { return "/v2/models/" + model + "/config" }

// An IndexEntry is a model, in the list that is the answer of IndexPath.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"` // READY, UNAVAILABLE, ...
}

// ModelConfig is the part of a model's configuration that a client reads.
type ModelConfig struct {
	Name     string   `json:"name"`
	Platform string   `json:"platform"`
	Backend  string   `json:"backend"`
	Input    []Tensor `json:"input"`
}

// A Tensor is one input of a model.
type Tensor struct {
	Name string `json:"name"`
}

// A Request is the body of a request. TensorRT-LLM takes its parameters beside
// the text, the vLLM backend within Parameters.
type Request struct {
	TextInput string `json:"text_input"`

	MaxTokens        int      `json:"max_tokens,omitempty"`
	MinTokens        int      `json:"min_tokens,omitempty"`
	MinLength        int      `json:"min_length,omitempty"` // the older name of MinTokens
	BadWords         *string  `json:"bad_words,omitempty"`
	StopWords        *string  `json:"stop_words,omitempty"`
	EndID            *int     `json:"end_id,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	Stream           bool     `json:"stream,omitempty"`
	AccumulateTokens bool     `json:"accumulate_tokens,omitempty"`

	Parameters            *Parameters `json:"parameters,omitempty"`
	ExcludeInputInOutput  bool        `json:"exclude_input_in_output,omitempty"`
	ReturnNumInputTokens  bool        `json:"return_num_input_tokens,omitempty"`
	ReturnNumOutputTokens bool        `json:"return_num_output_tokens,omitempty"`
	ReturnFinishReason    bool        `json:"return_finish_reason,omitempty"`
}

// Parameters are those of the vLLM backend.
type Parameters struct {
	Stream      bool     `json:"stream,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	IgnoreEOS   bool     `json:"ignore_eos,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`

	Stop         openai.Stop `json:"stop,omitempty"`
	StopTokenIDs []int32     `json:"stop_token_ids,omitempty"`
	IncludeStop  bool        `json:"include_stop_str_in_output,omitempty"`
}

// An ErrorResponse is the body of a failure, and its event within a stream.
type ErrorResponse struct {
	Error string `json:"error"`
}
