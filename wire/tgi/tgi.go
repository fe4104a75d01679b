// Package tgi is the shape of the native protocol of Hugging Face's Text
// Generation Inference: the types of both ends, and a fast reading of stream
// events for clients.
package tgi

// The paths of the protocol.
const (
	GenerateStreamPath = "/generate_stream"
	GeneratePath       = "/generate"
	InfoPath           = "/info"
	TokenizePath       = "/tokenize"
)

// A GenerateRequest is the body of a request to GenerateStreamPath and
// GeneratePath.
type GenerateRequest struct {
	Inputs     string     `json:"inputs"`
	Parameters Parameters `json:"parameters"`
}

// Parameters say how to generate. The server samples when any of the sampling
// fields is given, whatever DoSample says, so a nil is left out.
type Parameters struct {
	MaxNewTokens      int      `json:"max_new_tokens,omitempty"`
	Details           bool     `json:"details"`
	DoSample          bool     `json:"do_sample"`
	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	TypicalP          *float64 `json:"typical_p,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	TopNTokens        *int     `json:"top_n_tokens,omitempty"`
	Seed              *int64   `json:"seed,omitempty"`
	Stop              []string `json:"stop,omitempty"`
	Truncate          *int     `json:"truncate,omitempty"`
	ReturnFullText    *bool    `json:"return_full_text,omitempty"`
}

// StreamDetails are the server's counts at the end of a stream.
type StreamDetails struct {
	FinishReason    string `json:"finish_reason"` // length, eos_token or stop_sequence
	GeneratedTokens int    `json:"generated_tokens"`
	Seed            *int64 `json:"seed"`
	InputLength     int    `json:"input_length"`
}

// Info is the answer of InfoPath.
type Info struct {
	ModelID               string `json:"model_id"`
	ModelSHA              string `json:"model_sha,omitempty"`
	MaxConcurrentRequests int    `json:"max_concurrent_requests"`
	MaxBestOf             int    `json:"max_best_of"`
	MaxStopSequences      int    `json:"max_stop_sequences"`
	MaxInputTokens        int    `json:"max_input_tokens"`
	MaxTotalTokens        int    `json:"max_total_tokens"`
	MaxClientBatchSize    int    `json:"max_client_batch_size"`
	Router                string `json:"router"`
	Version               string `json:"version"`
	SHA                   string `json:"sha,omitempty"`
	DockerLabel           string `json:"docker_label,omitempty"`
}

// A TokenizeRequest asks TokenizePath for the tokens of a text.
type TokenizeRequest struct {
	Inputs string `json:"inputs"`
}

// A SimpleToken is one entry of the answer of TokenizePath, which is a list.
type SimpleToken struct {
	ID    int32  `json:"id"`
	Text  string `json:"text"`
	Start int    `json:"start"`
	Stop  int    `json:"stop"`
}

// An ErrorResponse is the body of a failure, and its event within a stream.
type ErrorResponse struct {
	Error     string `json:"error"`
	ErrorType string `json:"error_type"`
}
