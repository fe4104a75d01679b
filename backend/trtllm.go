package backend

import (
	"tacho"
	"tacho/wire"
)

var trtllm = Kind{
	Name:        "trtllm",
	Aliases:     []string{"trtllm-serve", "tensorrt-llm-serve"},
	Doc:         "trtllm-serve's completions endpoint: text or token ids, exact output lengths, and no field it does not know",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	MetricsPath: "/prometheus/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	carries:     append([]string{"logprobs"}, allSampling...),
	about:       "/version",
	owner:       "tensorrt_llm",
	signs: []sign{
		says(wire.OpenAIModelsPath, `"owned_by":"tensorrt_llm"`), shows("/prometheus/metrics", "trtllm_"),
	},
	encode:  encodeTRTLLM,
	decoder: newOpenAIDecoder,
	live:    completionMarks,
	models:  openAIModels,
}

// encodeTRTLLM sends no more than is set: the server refuses a request with a
// field it does not know.
func encodeTRTLLM(o *Options, r *tacho.Request) ([]byte, error) {
	q := plainCompletionOf(o, r)
	q.StreamOptions = &wire.OpenAIStreamOptions{IncludeUsage: true}
	if r.IgnoreEOS {
		q.MinTokens = r.MaxTokens
	}
	optional := o.Sampling.fields("repetition_penalty")
	if o.Logprobs != nil {
		optional["logprobs"] = *o.Logprobs
	}
	return marshalWith(q, optional, o.Extra, r.Extra)
}
