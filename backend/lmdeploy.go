package backend

import (
	"context"
	"net/http"

	"tacho"
	"tacho/wire/openai"
)

var lmdeploy = Kind{
	Name:        "lmdeploy",
	Doc:         "LMDeploy's completions endpoint: text, exact output lengths",
	Endpoint:    openai.CompletionsPath,
	Port:        23333,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true},
	ExactLength: true,
	carries:     allSampling,
	signs:       []sign{says(openai.ModelsPath, `"owned_by":"lmdeploy"`), shows("/metrics", "lmdeploy:")},
	encode:      func(o *Options, r *tacho.Request) ([]byte, error) { return encodeCompletion(o, r, nil) },
	decoder:     newOpenAIDecoder,
	live:        completionMarks,
	models:      openAIModels,
	count:       countEncoded,
}

// countEncoded counts as the completions endpoint will, with the token that
// begins a text.
func countEncoded(ctx context.Context, c *client, text string) (int, error) {
	var answer struct{ Length int }
	question := map[string]any{"input": text, "do_preprocess": false, "add_bos": true}
	err := c.ask(ctx, http.MethodPost, "/v1/encode", question, &answer)
	return answer.Length, err
}
