package backend

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/tacho-bench/tacho"
)

var tritonTRT = Kind{
	Name:        "triton",
	Aliases:     []string{"tensorrt-llm", "triton-trtllm"},
	Doc:         "Triton's generate extension over a TensorRT-LLM model: text; the server reports no token counts",
	Endpoint:    tritonPath,
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	noEndMark:   true,
	supports:    allSampling,
	about:       tritonServerPath,
	signatures:  []signature{certain(tritonServerPath, `"name":"triton"`)},
	prefer:      preferVLLM,
	encode:      encodeTritonTRT,
	decoder:     newTritonDecoder,
	tokenMarks:  []string{`"text_output":"`, `"text_output": "`},
	models: func(ctx context.Context, c *client) ([]Model, error) {
		return tritonModels(ctx, c, "ensemble", "tensorrt_llm_bls")
	},
}

var tritonVLLM = Kind{
	Name:        "triton-vllm",
	Doc:         "Triton's generate extension over a vLLM model: text, exact output lengths, token counts",
	Endpoint:    tritonPath,
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	noEndMark:   true,
	supports:    allSampling,
	encode:      encodeTritonVLLM,
	decoder:     newTritonDecoder,
	tokenMarks:  []string{`"text_output":"`, `"text_output": "`},
	models:      func(ctx context.Context, c *client) ([]Model, error) { return tritonModels(ctx, c, "vllm_model") },
}

// preferVLLM finds the engine behind the first model that accepts text.
func preferVLLM(ctx context.Context, c *client) (*Kind, string) {
	models, err := c.models(ctx, c)
	if err != nil {
		return nil, ""
	}
	const isVLLM = `"backend":"vllm"`
	for _, m := range models {
		path := "/v2/models/" + url.PathEscape(m.ID) + "/config"
		var config struct {
			Backend string         `json:"backend"`
			Input   []tritonTensor `json:"input"`
		}
		has := func(tensor string) bool {
			return slices.Contains(config.Input, tritonTensor{Name: tensor})
		}
		switch err := c.query(ctx, http.MethodGet, path, nil, &config); {
		case err != nil:
		case `"backend":"`+config.Backend+`"` == isVLLM:
			return &tritonVLLM, "GET " + path + " has " + isVLLM
		case has("sampling_parameters"): // older form of vLLM's parameters, used only by vLLM
			return &tritonVLLM, "GET " + path + " has an input sampling_parameters"
		case has("text_input"):
			return nil, ""
		}
	}
	return nil, ""
}

// unusedToken is larger than any vocabulary. As end token, it never occurs.
const unusedToken = 1 << 20

func encodeTritonTRT(o *Options, r *tacho.Request) ([]byte, error) {
	s, none := o.Sampling, ""
	q := tritonRequest{
		TextInput: r.Input.Text, MaxTokens: r.MaxTokens, BadWords: &none, StopWords: &none, Stream: true,
		Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP,
	}
	if r.IgnoreEOS {
		end := unusedToken
		q.MinTokens, q.EndID = r.MaxTokens, &end
	}
	return marshalWith(&q, s.fields("min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"), o.Extra, r.Extra)
}

func encodeTritonVLLM(o *Options, r *tacho.Request) ([]byte, error) {
	// The server passes the parameters, including extra fields, to vLLM.
	parameters, err := marshalWith(&tritonParameters{
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

// A tritonDecoder decodes events with the new text and, if requested, with token counts.
type tritonDecoder struct {
	scan       scanner
	cumulative bool // the text is the complete text so far, because of accumulate_tokens
	text       []byte
	length     int // length of the previous text
	finish     []byte
	usage      tacho.Usage // input tokens of this event, output tokens so far
	tokens     int         // tokens in this event
	hasTokens  bool        // tokens is set
	marked     bool        // the event contains a finish reason member
}

func newTritonDecoder(o *Options) decoder {
	cumulative, _ := o.Extra["accumulate_tokens"].(bool)
	return &tritonDecoder{cumulative: cumulative}
}

func (d *tritonDecoder) decode(payload []byte, c *chunk) error {
	d.text, d.finish = d.text[:0], d.finish[:0]
	d.tokens, d.hasTokens = 0, false
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.text, c.whole = d.text, d.cumulative
	c.token = len(d.text) > 0 || d.tokens > 0
	if d.cumulative {
		c.token = len(d.text) > d.length
		d.length = len(d.text)
	}
	c.mute = len(d.text) == 0
	c.tokens = d.tokens
	if d.hasTokens {
		d.usage.Completion = max(d.usage.Completion+d.tokens, d.usage.Completion) // guards against overflow
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
		d.tokens, d.hasTokens = s.Natural(), true
	case "finish_reason":
		d.marked = true
		d.finish, _ = s.String(d.finish[:0])
	}
}

// tritonModels lists the models that are ready, with the usual names first. If the server does not list its models,
// tritonModels queries only the usual names.
func tritonModels(ctx context.Context, c *client, usual ...string) ([]Model, error) {
	var list []struct {
		Name  string `json:"name"`
		State string `json:"state"` // READY, UNAVAILABLE, ...
	}
	err := c.query(ctx, http.MethodPost, "/v2/repository/index", struct{}{}, &list)
	if errors.Is(err, ErrNoEndpoint) {
		for _, name := range usual {
			if c.query(ctx, http.MethodGet, "/v2/models/"+name+"/ready", nil, nil) == nil {
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

const (
	tritonPath       = "/v2/models/" + modelPlaceholder + "/generate_stream"
	tritonServerPath = "/v2"
)

// A tritonTensor is one input of a model.
type tritonTensor struct {
	Name string `json:"name"`
}

// A tritonRequest is the body of a request. TensorRT-LLM reads parameters next to the text, the vLLM backend reads
// Parameters.
type tritonRequest struct {
	TextInput string `json:"text_input"`

	MaxTokens   int      `json:"max_tokens,omitempty"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	BadWords    *string  `json:"bad_words,omitempty"`
	StopWords   *string  `json:"stop_words,omitempty"`
	EndID       *int     `json:"end_id,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Stream      bool     `json:"stream,omitempty"`
}

// tritonParameters are the parameters of the vLLM backend.
type tritonParameters struct {
	Stream      bool     `json:"stream,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	IgnoreEOS   bool     `json:"ignore_eos,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
}
