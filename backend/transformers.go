package backend

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var transformersServe = Kind{
	Name:       "transformers",
	Aliases:    []string{"transformers-serve"},
	Doc:        "the completions endpoint of transformers serve: text; only fields it supports, no exact output lengths",
	Endpoint:   wire.OpenAICompletionsPath,
	Port:       8000,
	Takes:      Forms{Text: true},
	supports:   []string{"temperature", "top_p", "frequency_penalty"},
	signatures: []signature{likely("/openapi.json", `"/load_model"`)},
	encode:     encodeTransformers,
	decoder:    newOpenAIDecoder,
	tokenMarks: completionMarks,
	models:     openAIModels,
}

// encodeTransformers does not request usage, because the server always sends usage.
func encodeTransformers(o *Options, r *tacho.Request) ([]byte, error) {
	q := plainCompletionOf(o, r)
	q.IgnoreEOS = false
	return marshalWith(q, o.Extra, r.Extra)
}
