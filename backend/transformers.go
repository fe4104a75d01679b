package backend

import (
	"tacho"
	"tacho/wire"
)

var transformersServe = Kind{
	Name:     "transformers",
	Aliases:  []string{"transformers-serve"},
	Doc:      "the completions endpoint of transformers serve: text; no field it does not know, and no exact output lengths",
	Endpoint: wire.OpenAICompletionsPath,
	Port:     8000,
	Takes:    Forms{Text: true},
	carries:  []string{"temperature", "top_p", "frequency_penalty"},
	signs:    []sign{shows("/openapi.json", `"/load_model"`)},
	encode:   encodeTransformers,
	decoder:  newOpenAIDecoder,
	live:     completionMarks,
	models:   openAIModels,
}

// encodeTransformers asks for no usage, which comes anyway.
func encodeTransformers(o *Options, r *tacho.Request) ([]byte, error) {
	q := plainCompletionOf(o, r)
	q.IgnoreEOS = false
	return marshalWith(q, o.Extra, r.Extra)
}
