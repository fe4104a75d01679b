package backend

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"tacho"
	"tacho/wire"
)

var tritonTRT = Kind{
	Name:        "triton",
	Aliases:     []string{"tensorrt-llm", "triton-trtllm"},
	Doc:         "Triton's generate extension over a TensorRT-LLM model: text; the server gives no counts",
	Endpoint:    wire.TritonStreamPath(modelHole),
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	unmarked:    true,
	carries:     allSampling,
	about:       wire.TritonServerPath,
	signs:       []sign{says(wire.TritonServerPath, `"name":"triton"`)},
	rather:      ratherVLLM,
	encode:      encodeTritonTRT,
	decoder:     newTritonDecoder,
	live:        []string{`"text_output":"`, `"text_output": "`},
	models: func(ctx context.Context, c *client) ([]Model, error) {
		return tritonModels(ctx, c, "ensemble", "tensorrt_llm_bls")
	},
}

var tritonVLLM = Kind{
	Name:        "triton-vllm",
	Doc:         "Triton's generate extension over a vLLM model: text, exact output lengths, the server's counts",
	Endpoint:    wire.TritonStreamPath(modelHole),
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	unmarked:    true,
	carries:     allSampling,
	encode:      encodeTritonVLLM,
	decoder:     newTritonDecoder,
	live:        []string{`"text_output":"`, `"text_output": "`},
	models:      func(ctx context.Context, c *client) ([]Model, error) { return tritonModels(ctx, c, "vllm_model") },
}

// ratherVLLM looks which engine is behind the first model that takes text.
func ratherVLLM(ctx context.Context, c *client) (*Kind, string) {
	models, err := c.models(ctx, c)
	if err != nil {
		return nil, ""
	}
	const isVLLM = `"backend":"vllm"`
	for _, m := range models {
		path := wire.TritonConfigPath(url.PathEscape(m.ID))
		var config wire.TritonModelConfig
		has := func(tensor string) bool {
			return slices.Contains(config.Input, wire.TritonTensor{Name: tensor})
		}
		switch err := c.ask(ctx, http.MethodGet, path, nil, &config); {
		case err != nil:
		case `"backend":"`+config.Backend+`"` == isVLLM:
			return &tritonVLLM, "GET " + path + " has " + isVLLM
		case has("sampling_parameters"): // the older way to write vLLM's parameters, and it alone has it
			return &tritonVLLM, "GET " + path + " has an input sampling_parameters"
		case has("text_input"):
			return nil, ""
		}
	}
	return nil, ""
}

// noSuchToken is above every vocabulary: an end token that never comes.
const noSuchToken = 1 << 20

func encodeTritonTRT(o *Options, r *tacho.Request) ([]byte, error) {
	s, none := o.Sampling, ""
	q := wire.TritonRequest{
		TextInput: r.Input.Text, MaxTokens: r.MaxTokens, BadWords: &none, StopWords: &none, Stream: true,
		Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP,
	}
	if r.IgnoreEOS {
		end := noSuchToken
		q.MinTokens, q.EndID = r.MaxTokens, &end
	}
	return marshalWith(&q, s.fields("min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"), o.Extra, r.Extra)
}

func encodeTritonVLLM(o *Options, r *tacho.Request) ([]byte, error) {
	// The server hands what is among the parameters to vLLM, and extra fields
	// with it.
	parameters, err := marshalWith(&wire.TritonParameters{
		Stream: true, MaxTokens: r.MaxTokens, IgnoreEOS: r.IgnoreEOS, Temperature: o.Sampling.Temperature,
	}, o.Sampling.fields("top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"), o.Extra, r.Extra)
	if err != nil {
		return nil, err
	}
	return marshal(struct {
		TextInput             string  `json:"text_input"`
		Parameters            rawJSON `json:"parameters"`
		ExcludeInputInOutput  bool    `json:"exclude_input_in_output"`
		ReturnNumInputTokens  bool    `json:"return_num_input_tokens"`
		ReturnNumOutputTokens bool    `json:"return_num_output_tokens"`
		ReturnFinishReason    bool    `json:"return_finish_reason"`
	}{r.Input.Text, parameters, true, true, true, true})
}

// A tritonDecoder reads events of which each is what the model added, with
// counts of its own where they were asked for.
type tritonDecoder struct {
	scan       scanner
	cumulative bool // the text is all so far: accumulate_tokens was asked for
	text       []byte
	length     int // of the text before
	finish     []byte
	usage      tacho.Usage // input of this event, output so far
	tokens     int         // of this event
	told       bool        // tokens is given
	marked     bool        // the event has a place for a finish reason
}

func newTritonDecoder(o *Options) decoder {
	cumulative, _ := o.Extra["accumulate_tokens"].(bool)
	return &tritonDecoder{cumulative: cumulative}
}

func (d *tritonDecoder) decode(payload []byte, c *chunk) error {
	d.text, d.finish = d.text[:0], d.finish[:0]
	d.tokens, d.told = 0, false
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.text, c.whole = d.text, d.cumulative
	c.token = len(d.text) > 0 || d.tokens > 0
	if d.cumulative {
		c.token = len(d.text) > d.length
		d.length = len(d.text)
	}
	c.tokens = d.tokens
	if d.told {
		d.usage.Completion = max(d.usage.Completion+d.tokens, d.usage.Completion) // it cannot overflow
		c.counted, c.usage = true, d.usage
	}
	c.finish, c.end, c.marked = d.finish, len(d.finish) > 0, d.marked
	return nil
}

func (d *tritonDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "text_output":
		d.text, _ = s.String(d.text[:0])
	case "num_input_tokens":
		d.usage.Prompt = s.Natural()
	case "num_output_tokens":
		d.tokens, d.told = s.Natural(), true
	case "finish_reason":
		d.marked = true
		d.finish, _ = s.String(d.finish[:0])
	}
}

// tritonModels lists the models that are ready, those first that usually take
// requests. A server that does not list them is asked for these alone.
func tritonModels(ctx context.Context, c *client, usual ...string) ([]Model, error) {
	var list []wire.TritonIndexEntry
	err := c.ask(ctx, http.MethodPost, wire.TritonIndexPath, struct{}{}, &list)
	if errors.Is(err, ErrNoEndpoint) {
		for _, name := range usual {
			if c.ask(ctx, http.MethodGet, "/v2/models/"+name+"/ready", nil, nil) == nil {
				return []Model{{ID: name}}, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	var models []Model
	for _, m := range list {
		if m.State == "" || m.State == "READY" {
			models = append(models, Model{ID: m.Name})
		}
	}
	rank := func(m Model) int {
		if i := slices.Index(usual, m.ID); i >= 0 {
			return i - len(usual)
		}
		return 0
	}
	slices.SortStableFunc(models, func(a, b Model) int { return cmp.Compare(rank(a), rank(b)) })
	return models, nil
}
