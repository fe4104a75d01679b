package backend

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var deepspeedMII = Kind{
	Name:        "deepspeed-mii",
	Aliases:     []string{"mii"},
	Doc:         "DeepSpeed-MII's completions endpoint: text; the server reports no token counts",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	supports:    []string{"temperature", "top_p", "top_k"},
	signatures:  []signature{certain(wire.OpenAIModelsPath, `"owned_by":"deepspeed-mii"`)},
	encode:      encodeMII,
	decoder:     newOpenAIDecoder,
	tokenMarks:  completionMarks,
	models:      openAIModels,
}

// The native server is a separate program with a single endpoint. It answers no queries except for its OpenAPI
// description.
var deepspeedMIIGenerate = Kind{
	Name:        "deepspeed-mii-generate",
	Aliases:     []string{"mii-generate"},
	Doc:         "DeepSpeed-MII's own endpoint: text; the server reports neither token counts nor its model",
	Endpoint:    "/generate",
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	supports:    []string{"temperature", "top_p", "top_k"},
	signatures: []signature{
		// Other servers use the same endpoint name, but a different schema name.
		certain(openAPIPath, `"generate_generate_post","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/CompletionRequest"`),
	},
	encode:     encodeMIIGenerate,
	decoder:    func(*Options) decoder { return new(miiDecoder) },
	tokenMarks: []string{`"text":["`, `"text": ["`},
	models:     openAIModels, // for a proxy in front of the server; the server itself lists no models
}

// encodeMII sets the minimum number of tokens, because the server does not support ignore_eos.
func encodeMII(o *Options, r *tacho.Request) ([]byte, error) {
	q := plainCompletionOf(o, r)
	if r.IgnoreEOS {
		q.IgnoreEOS, q.MinTokens = false, r.MaxTokens
	}
	return marshalWith(q, o.Extra, r.Extra)
}

func encodeMIIGenerate(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	q := miiRequest{Prompt: r.Input.Text, MaxTokens: r.MaxTokens, Stream: true, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK}
	if r.IgnoreEOS {
		q.MinTokens = r.MaxTokens
	}
	return marshalWith(&q, o.Extra, r.Extra)
}

// An miiDecoder decodes events that contain a list of texts, one per prompt. Each request has one prompt.
type miiDecoder struct {
	scan scanner
	text []byte
}

func (d *miiDecoder) decode(payload []byte, c *chunk) error {
	if string(payload) == wire.OpenAIDone {
		c.end = true
		return nil
	}
	d.text = d.text[:0]
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.text, c.token = d.text, len(d.text) > 0
	return nil
}

func (d *miiDecoder) member(key []byte) {
	if string(key) == "text" {
		d.scan.Array(func() { d.text, _ = d.scan.String(d.text) })
	}
}

// An miiRequest is the body of a request of DeepSpeed-MII's native protocol. The protocol cannot ignore the
// end-of-sequence token; instead, set the minimum number of tokens to the maximum.
type miiRequest struct {
	Prompt      string   `json:"prompt"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	Stream      bool     `json:"stream,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
}
