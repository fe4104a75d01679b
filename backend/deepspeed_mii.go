package backend

import (
	"tacho"
	"tacho/wire/openai"
)

var deepspeedMII = Kind{
	Name:        "deepspeed-mii",
	Aliases:     []string{"mii"},
	Doc:         "DeepSpeed-MII's completions endpoint: text; the server gives no counts",
	Endpoint:    openai.CompletionsPath,
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	carries:     []string{"temperature", "top_p", "top_k"},
	signs:       []sign{says(openai.ModelsPath, `"owned_by":"deepspeed-mii"`), says(openai.ModelsPath, `"owned_by":"mii"`)},
	encode:      encodeMII,
	decoder:     newOpenAIDecoder,
	live:        completionMarks,
	models:      openAIModels,
}

// encodeMII asks for the least number of tokens instead of no end: the server
// does not know ignore_eos.
func encodeMII(o *Options, r *tacho.Request) ([]byte, error) {
	sampling := openAISampling(o, r)
	if r.IgnoreEOS {
		sampling.IgnoreEOS, sampling.MinTokens = false, r.MaxTokens
	}
	return marshalWith(&struct {
		Model     string        `json:"model,omitempty"`
		Prompt    openai.Prompt `json:"prompt"`
		MaxTokens int           `json:"max_tokens,omitempty"`
		Stream    bool          `json:"stream"`
		openai.Sampling
	}{
		Model: modelOf(o, r), Prompt: openai.Prompt{Text: r.Input.Text}, MaxTokens: r.MaxTokens, Stream: true, Sampling: sampling,
	}, o.Extra, r.Extra)
}
