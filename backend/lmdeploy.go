package backend

import (
	"context"
	"encoding/json"
	"net/http"

	"tacho"
	"tacho/internal/limit"
	"tacho/wire"
)

var lmdeployCompletions = Kind{
	Name:        "lmdeploy",
	Doc:         "LMDeploy's completions endpoint: text, exact output lengths",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        23333,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true},
	ExactLength: true,
	carries:     allSampling,
	signs:       []sign{says(wire.OpenAIModelsPath, `"owned_by":"lmdeploy"`), shows("/metrics", "lmdeploy:")},
	rather:      ratherGenerate,
	encode:      func(o *Options, r *tacho.Request) ([]byte, error) { return encodeCompletion(o, r, nil) },
	decoder:     newOpenAIDecoder,
	live:        completionMarks,
	models:      openAIModels,
	count:       countEncoded,
}

var lmdeployGenerate = Kind{
	Name:        "lmdeploy-generate",
	Aliases:     []string{"lmdeploy-native"},
	Doc:         "LMDeploy's own endpoint: text or token ids, exact output lengths, the server's counts with every event",
	Endpoint:    wire.LMDeployGeneratePath,
	Port:        23333,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	carries:     []string{"temperature", "top_p", "top_k", "min_p", "repetition_penalty"},
	encode:      encodeLMDeploy,
	decoder:     func(*Options) decoder { return &sglangDecoder{deltas: true} }, // the same events, and increments from the start
	live:        completionMarks,
	models:      openAIModels,
	count:       countEncoded,
}

// ratherGenerate prefers the endpoint that takes token ids and counts every
// event, where the server is new enough to describe it.
func ratherGenerate(ctx context.Context, c *client) (*Kind, string) {
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if c.ask(ctx, http.MethodGet, openAPIPath, nil, &doc) != nil || doc.Components.Schemas[wire.LMDeploySchema] == nil {
		return nil, ""
	}
	return &lmdeployGenerate, "GET " + openAPIPath + " has " + wire.LMDeploySchema
}

func encodeLMDeploy(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	return marshalWith(&wire.LMDeployRequest{
		Prompt: r.Input.Text, InputIDs: r.Input.IDs, MaxTokens: r.MaxTokens, Stream: true, IgnoreEOS: r.IgnoreEOS,
		Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty,
	}, o.Extra, r.Extra)
}

// countEncoded counts as the completions endpoint will, with the token that
// begins a text.
func countEncoded(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	var answer wire.LMDeployEncodeResponse
	err := c.askFor(ctx, limit.Tokens, http.MethodPost, wire.LMDeployEncodePath, wire.LMDeployEncodeRequest{Input: in.Text, AddBOS: true}, &answer)
	return answer.Length, err
}
