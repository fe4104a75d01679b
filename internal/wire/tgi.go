package wire

// Paths of the native protocol of Hugging Face's Text Generation Inference.
const (
	TGIGenerateStreamPath = "/generate_stream"
	TGIGeneratePath       = "/generate"
	TGIInfoPath           = "/info"
	TGITokenizePath       = "/tokenize"
)

// TGIParameters holds the generation parameters. If any sampling field is present, the server samples, regardless
// of DoSample; nil fields are therefore omitted.
type TGIParameters struct {
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

// TGIInfo is the response of TGIInfoPath.
type TGIInfo struct {
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
