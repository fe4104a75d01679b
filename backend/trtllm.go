package backend

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var trtllm = Kind{
	Name:        "trtllm",
	Aliases:     []string{"trtllm-serve", "tensorrt-llm-serve"},
	Doc:         "trtllm-serve's completions endpoint: text or token ids, exact output lengths, only fields it supports",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	MetricsPath: "/prometheus/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	supports:    append([]string{"logprobs"}, allSampling...),
	about:       "/version",
	owner:       "tensorrt_llm",
	signatures: []signature{
		certain(wire.OpenAIModelsPath, `"owned_by":"tensorrt_llm"`), likely("/prometheus/metrics", "trtllm_"),
	},
	encode:     encodeTRTLLM,
	decoder:    newOpenAIDecoder,
	tokenMarks: completionMarks,
	models:     openAIModels,
}

// encodeTRTLLM sends only the options set by the user, because the server rejects unknown fields.
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
