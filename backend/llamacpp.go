package backend

import (
	"cmp"
	"context"
	"net/http"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/wire"
)

var llamaCPP = Kind{
	Name:        "llamacpp",
	Aliases:     []string{"llama.cpp", "llama-server"},
	Doc:         "llama.cpp's own endpoint: text or token ids, exact output lengths, server timings",
	Endpoint:    wire.LlamaCppCompletionPath,
	Port:        8080,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	supports:    append([]string{"logprobs"}, allSampling...),
	about:       wire.LlamaCppPropsPath,
	signatures: []signature{
		certain(wire.OpenAIModelsPath, `"owned_by":"llamacpp"`),
		likely(wire.LlamaCppPropsPath, `"default_generation_settings"`), likely("/metrics", "llamacpp:"),
	},
	encode:     encodeLlama,
	decoder:    func(*Options) decoder { return new(llamaDecoder) },
	tokenMarks: []string{`"content":"`, `"content": "`},
	models:     llamaModels,
	count:      countLlamaTokens,
}

// encodeLlama disables the prompt cache. Otherwise a slot would reuse the previous prompt, and the server would
// look faster.
func encodeLlama(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	optional := s.fields("top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
	rename(optional, "repetition_penalty", "repeat_penalty")
	if o.Logprobs != nil {
		optional["n_probs"] = *o.Logprobs
	}
	prompt, err := marshal(wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs})
	if err != nil {
		return nil, err
	}
	remember := false
	return marshalWith(&wire.LlamaCppRequest{
		Prompt: prompt, NPredict: r.MaxTokens, Temperature: s.Temperature, IgnoreEOS: r.IgnoreEOS, Stream: true,
		CachePrompt: &remember, ReturnTokens: true,
	}, optional, o.Extra, r.Extra)
}

// A llamaDecoder decodes events with one or more tokens. The server holds back incomplete characters, and the list
// of token ids contains only the last id. Each event carries the total number of tokens so far.
type llamaDecoder struct {
	scan         scanner
	before       int // tokens generated up to the previous event
	text, finish []byte
	ids          int
	stop         bool
	usage        tacho.Usage
	counted      bool
	times        tacho.ServerTimes
	timed        bool
}

func (d *llamaDecoder) decode(payload []byte, c *chunk) error {
	*d = llamaDecoder{scan: d.scan, before: d.before, text: d.text[:0], finish: d.finish[:0]}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.text = d.text
	c.tokens = d.ids
	if d.counted {
		c.tokens = max(d.usage.Completion-d.before, 0)
		d.before = d.usage.Completion
	}
	c.token, c.mute = len(d.text) > 0 || c.tokens > 0, len(d.text) == 0 && d.ids == 0
	if d.stop {
		c.end, c.finish = true, d.finish
		c.counted, c.usage = d.counted, d.usage
		c.timed, c.times = d.timed, d.times
	}
	return nil
}

func (d *llamaDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "content":
		d.text, _ = s.String(d.text[:0])
	case "tokens":
		d.ids = s.Len()
	case "stop":
		d.stop = s.Type() == 't'
	case "stop_type":
		d.finish, _ = s.String(d.finish[:0])
	case "tokens_predicted":
		d.usage.Completion, d.counted = s.Natural(), true
	case "tokens_evaluated":
		d.usage.Prompt = s.Natural()
	case "timings":
		d.timed = s.Object(d.timing)
	}
}

func (d *llamaDecoder) timing(key []byte) {
	s := &d.scan
	switch string(key) {
	case "cache_n":
		s.NaturalIfPresent(&d.usage.Cached, &d.usage.TellsCached)
	case "prompt_ms":
		d.times.Prefill = millis(s.Float())
	case "predicted_ms":
		d.times.Decode = millis(s.Float())
	}
}

func llamaModels(ctx context.Context, c *client) ([]Model, error) {
	var p wire.LlamaCppProps
	if err := c.query(ctx, http.MethodGet, wire.LlamaCppPropsPath, nil, &p); err != nil {
		return nil, err
	}
	model := Model{ID: cmp.Or(p.ModelAlias, p.ModelPath), Root: p.ModelPath, MaxLen: p.DefaultGenerationSettings.NCtx}
	if listed, err := openAIModels(ctx, c); err == nil && len(listed) == 1 { // only this list contains the vocabulary size
		model.Vocab = listed[0].Vocab
	}
	return []Model{model}, nil
}

func countLlamaTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	var answer struct{ Tokens []int32 }
	err := c.queryLimit(ctx, limit.Tokens, http.MethodPost, wire.OpenAITokenizePath, map[string]any{"content": in.Text, "add_special": true}, &answer)
	return len(answer.Tokens), err
}
