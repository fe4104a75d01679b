package backend

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/wire"
)

var textGeneration = Kind{
	Name:       "tgi",
	Aliases:    []string{"text-generation-inference"},
	Doc:        "the native endpoint of Text Generation Inference: text only, one event per token",
	Endpoint:   wire.TGIGenerateStreamPath,
	Port:       8000, // the server's defaults are 80 and 3000, but other benchmarks default to 8000
	Takes:      Forms{Text: true},
	encode:     encodeGenerate,
	decoder:    func(*Options) decoder { return new(tgiDecoder) },
	tokenMarks: []string{`"token":`},
	// The server silently ignores other parameters.
	supports:    []string{"temperature", "top_p", "top_k", "repetition_penalty", "frequency_penalty", "logprobs"},
	MetricsPath: "/metrics",
	about:       wire.TGIInfoPath,
	signatures: []signature{
		certain(wire.OpenAIModelsPath, `"owned_by":"tgi"`),
		likely(wire.TGIInfoPath, `"router":"text-generation-router`), likely(wire.TGIInfoPath, `"max_concurrent_requests"`),
		likely("/metrics", "tgi_"),
	},
	models: tgiModels,
	count:  countTGITokens,
}

func encodeGenerate(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	p := wire.TGIParameters{
		MaxNewTokens: r.MaxTokens, Details: true, TopK: s.TopK, TopNTokens: o.Logprobs,
		RepetitionPenalty: s.RepetitionPenalty, FrequencyPenalty: s.FrequencyPenalty,
	}
	// Temperature 0 and top_p 1 disable sampling, but the server rejects both values.
	if s.Temperature != nil && *s.Temperature > 0 {
		p.Temperature = s.Temperature
	}
	if s.TopP != nil && *s.TopP < 1 {
		p.TopP = s.TopP
	}
	p.DoSample = p.Temperature != nil || p.TopP != nil || p.TopK != nil
	// The server reads extra fields from the parameters and ignores fields outside.
	parameters, err := marshalWith(&p, o.Extra, r.Extra)
	if err != nil {
		return nil, err
	}
	return marshal(struct {
		Inputs     string          `json:"inputs"`
		Parameters json.RawMessage `json:"parameters"`
	}{r.Input.Text, parameters})
}

type tgiDecoder struct{ delta tgiDelta }

func (d *tgiDecoder) decode(payload []byte, c *chunk) error {
	if err := d.delta.Decode(payload); err != nil {
		return err
	}
	x := &d.delta
	c.failed, c.message = x.Failed, x.Error
	if x.Token {
		c.token, c.tokens, c.mute = true, 1, len(x.Text) == 0 && !x.Scored
	}
	if !x.Special {
		c.text = x.Text
	}
	if x.Last {
		c.end, c.whole, c.text = true, true, x.Whole
	}
	c.finish = x.Finish
	if x.Counted {
		c.counted = true
		c.usage = tacho.Usage{Prompt: x.Input, Completion: x.Output}
	}
	return nil
}

func tgiModels(ctx context.Context, c *client) ([]Model, error) {
	var info wire.TGIInfo
	if err := c.query(ctx, http.MethodGet, wire.TGIInfoPath, nil, &info); err != nil {
		return nil, err
	}
	return []Model{{ID: info.ModelID, Root: info.ModelID, MaxLen: info.MaxTotalTokens}}, nil
}

func countTGITokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	var tokens []struct{} // only the number of tokens matters
	err := c.queryLimit(ctx, limit.Tokens, http.MethodPost, wire.TGITokenizePath, tgiTokenizeRequest{Inputs: in.Text}, &tokens)
	return len(tokens), err
}

// A tgiTokenizeRequest is the body of a request to TGITokenizePath.
type tgiTokenizeRequest struct {
	Inputs string `json:"inputs"`
}
