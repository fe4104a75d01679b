package wire

// TritonStreamPath returns the path for requests to a model.
func TritonStreamPath(model string) string { return "/v2/models/" + model + "/generate_stream" }

// Paths of metadata queries.
const (
	TritonServerPath = "/v2"
	TritonIndexPath  = "/v2/repository/index"
)

// TritonConfigPath returns the path of a model's configuration.
func TritonConfigPath(model string) string { return "/v2/models/" + model + "/config" }

// A TritonIndexEntry is one model in the response of TritonIndexPath.
type TritonIndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"` // READY, UNAVAILABLE, ...
}

// TritonModelConfig is the part of a model's configuration used by the client.
type TritonModelConfig struct {
	Name     string         `json:"name"`
	Platform string         `json:"platform"`
	Backend  string         `json:"backend"`
	Input    []TritonTensor `json:"input"`
}

// A TritonTensor is one input of a model.
type TritonTensor struct {
	Name string `json:"name"`
}

// A TritonRequest is the body of a request. TensorRT-LLM reads parameters next to the text, the vLLM backend reads
// Parameters.
type TritonRequest struct {
	TextInput string `json:"text_input"`

	MaxTokens        int      `json:"max_tokens,omitempty"`
	MinTokens        int      `json:"min_tokens,omitempty"`
	MinLength        int      `json:"min_length,omitempty"` // older name of MinTokens
	BadWords         *string  `json:"bad_words,omitempty"`
	StopWords        *string  `json:"stop_words,omitempty"`
	EndID            *int     `json:"end_id,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	Stream           bool     `json:"stream,omitempty"`
	AccumulateTokens bool     `json:"accumulate_tokens,omitempty"`

	Parameters            *TritonParameters `json:"parameters,omitempty"`
	ExcludeInputInOutput  bool              `json:"exclude_input_in_output,omitempty"`
	ReturnNumInputTokens  bool              `json:"return_num_input_tokens,omitempty"`
	ReturnNumOutputTokens bool              `json:"return_num_output_tokens,omitempty"`
	ReturnFinishReason    bool              `json:"return_finish_reason,omitempty"`
}

// TritonParameters are the parameters of the vLLM backend.
type TritonParameters struct {
	Stream      bool     `json:"stream,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	IgnoreEOS   bool     `json:"ignore_eos,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`

	Stop         OpenAIStop `json:"stop,omitempty"`
	StopTokenIDs []int32    `json:"stop_token_ids,omitempty"`
	IncludeStop  bool       `json:"include_stop_str_in_output,omitempty"`
}
