package wire

// Paths of SGLang's native protocol.
const (
	SGLangGeneratePath   = "/generate"
	SGLangFlushCachePath = "/flush_cache"
	SGLangServerInfoPath = "/server_info"
	SGLangModelInfoPath  = "/model_info"
)

// SGLangSamplingParams holds sampling parameters and stop conditions.
type SGLangSamplingParams struct {
	MaxNewTokens   int      `json:"max_new_tokens,omitempty"`
	MinNewTokens   int      `json:"min_new_tokens,omitempty"`
	IgnoreEOS      bool     `json:"ignore_eos,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"`
	TopP           *float64 `json:"top_p,omitempty"`
	TopK           *int     `json:"top_k,omitempty"`
	StreamInterval int      `json:"stream_interval,omitempty"`

	Stop         OpenAIStop `json:"stop,omitempty"`
	StopTokenIDs []int32    `json:"stop_token_ids,omitempty"`
}
