package backend

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/wire"
)

var lmdeployCompletions = Kind{
	Name:        "lmdeploy",
	Doc:         "LMDeploy's completions endpoint: text, exact output lengths",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        23333,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true},
	ExactLength: true,
	supports:    allSampling,
	signatures:  []signature{certain(wire.OpenAIModelsPath, `"owned_by":"lmdeploy"`), likely("/metrics", "lmdeploy:")},
	prefer:      preferGenerate,
	encode:      func(o *Options, r *tacho.Request) ([]byte, error) { return encodeCompletion(o, r, nil) },
	decoder:     newOpenAIDecoder,
	tokenMarks:  completionMarks,
	models:      openAIModels,
	count:       countEncoded,
}

var lmdeployGenerate = Kind{
	Name:        "lmdeploy-generate",
	Aliases:     []string{"lmdeploy-native"},
	Doc:         "LMDeploy's own endpoint: text or token ids, exact output lengths, token counts in every event",
	Endpoint:    "/generate",
	Port:        23333,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	supports:    []string{"temperature", "top_p", "top_k", "min_p", "repetition_penalty"},
	encode:      encodeLMDeploy,
	decoder:     func(*Options) decoder { return &sglangDecoder{deltas: true} }, // same events, but always increments
	tokenMarks:  completionMarks,
	models:      openAIModels,
	count:       countEncoded,
}

// preferGenerate selects the native endpoint, which accepts token ids and counts the tokens of every event, if the
// server describes the endpoint. Older servers do not.
func preferGenerate(ctx context.Context, c *client) (*Kind, string) {
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if c.query(ctx, http.MethodGet, openAPIPath, nil, &doc) != nil || doc.Components.Schemas[lmdeploySchema] == nil {
		return nil, ""
	}
	return &lmdeployGenerate, "GET " + openAPIPath + " has " + lmdeploySchema
}

func encodeLMDeploy(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	return marshalWith(&lmdeployRequest{
		Prompt: r.Input.Text, InputIDs: r.Input.IDs, MaxTokens: r.MaxTokens, Stream: true, IgnoreEOS: r.IgnoreEOS,
		Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty,
	}, o.Extra, r.Extra)
}

// countEncoded counts tokens as the completions endpoint does, including the beginning-of-sequence token.
func countEncoded(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	q := struct {
		Input        string `json:"input"`
		DoPreprocess bool   `json:"do_preprocess"` // apply the chat template
		AddBOS       bool   `json:"add_bos"`       // prepend the beginning-of-sequence token
	}{Input: in.Text, AddBOS: true}
	var answer struct {
		Length int `json:"length"`
	}
	err := c.queryLimit(ctx, limit.Tokens, http.MethodPost, "/v1/encode", q, &answer)
	return answer.Length, err
}

// lmdeploySchema is the name of an lmdeployRequest in the server's OpenAPI description. Older servers without the
// native endpoint do not contain the name.
const lmdeploySchema = "GenerateReqInput"

// An lmdeployRequest is the body of a request to the native endpoint. The input is either Prompt or InputIDs.
type lmdeployRequest struct {
	Prompt            string   `json:"prompt,omitempty"`
	InputIDs          []int32  `json:"input_ids,omitempty"`
	MaxTokens         int      `json:"max_tokens,omitempty"`
	Stream            bool     `json:"stream,omitempty"`
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
}
