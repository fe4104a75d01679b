package backend

import (
	"tacho"
	"tacho/wire/openai"
)

var trtllm = Kind{
	Name:        "trtllm",
	Aliases:     []string{"trtllm-serve", "tensorrt-llm-serve"},
	Doc:         "trtllm-serve's completions endpoint: text or token ids, exact output lengths, and no field it does not know",
	Endpoint:    openai.CompletionsPath,
	Port:        8000,
	MetricsPath: "/prometheus/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	carries:     append([]string{"logprobs"}, allSampling...),
	about:       "/version",
	owner:       "tensorrt_llm",
	signs: []sign{
		says(openai.ModelsPath, `"owned_by":"tensorrt_llm"`), shows("/prometheus/metrics", "trtllm_"),
	},
	encode:  encodeTRTLLM,
	decoder: newOpenAIDecoder,
	live:    completionMarks,
	models:  openAIModels,
}

// encodeTRTLLM sends no more than is set: the server refuses a request with a
// field it does not know.
func encodeTRTLLM(o *Options, r *tacho.Request) ([]byte, error) {
	sampling := openAISampling(o, r)
	if r.IgnoreEOS {
		sampling.MinTokens = r.MaxTokens
	}
	optional := given(map[string]*float64{"repetition_penalty": o.Sampling.RepetitionPenalty})
	if o.Logprobs != nil {
		optional["logprobs"] = *o.Logprobs
	}
	return marshalWith(&struct {
		Model         string                `json:"model,omitempty"`
		Prompt        openai.Prompt         `json:"prompt"`
		MaxTokens     int                   `json:"max_tokens,omitempty"`
		Stream        bool                  `json:"stream"`
		StreamOptions *openai.StreamOptions `json:"stream_options"`
		openai.Sampling
	}{
		Model: modelOf(o, r), Prompt: openai.Prompt{Text: r.Input.Text, IDs: r.Input.IDs}, MaxTokens: r.MaxTokens,
		Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true}, Sampling: sampling,
	}, optional, o.Extra, r.Extra)
}
