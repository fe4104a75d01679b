package sim

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

// llamaCompletion sends its header with the first token, so an earlier error can
// still set the status.
var llamaCompletion = &dialect{
	paths:     []string{wire.LlamaCppCompletionPath},
	mime:      "text/event-stream",
	frame:     sseFrame,
	read:      readLlama,
	lateHead:  true,
	keepAlive: 30 * time.Second,
	errorBody: llamaErrorBody,
}

func llamaErrorBody(_ *emulatedServer, c *apiError) []byte {
	kind := "invalid_request_error"
	switch {
	case c.status == http.StatusServiceUnavailable:
		kind = "unavailable_error"
	case c.status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return appendJSON(nil, llamacppErrorResponse{Error: llamacppError{Code: c.status, Message: c.message, Type: kind}})
}

func readLlama(in *incoming) (*generation, error) {
	var q wire.LlamaCppRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	var given wire.OpenAIPrompt
	if err := json.Unmarshal(q.Prompt, &given); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	if q.CachePrompt != nil && !*q.CachePrompt {
		p.BlockTokens = 0
	}
	p.AddText(given.Text)
	p.AddIDs(given.IDs)
	limit := max(q.NPredict, q.MaxTokens, 0) // a negative value means no limit
	a, err := in.generation(p, params{limit: limit, ignoreEOS: q.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: q.Stop})
	v := &llamaEncoder{generation: a, ids: q.ReturnTokens, prompt: given.Text}
	v.token = newTemplate(string(appendEvent(nil, "", llamacppChunk{
		Content: textHole, Tokens: []int32{intHole}, TokensPredicted: intHole2, TokensEvaluated: p.Tokens,
	})), textHole, intHole, intHole2)
	a.encoder = v
	return a, nil
}

type llamaEncoder struct {
	*generation
	prompt string
	ids    bool
	token  template
}

func (v *llamaEncoder) early(b []byte) []byte { return b }

func (v *llamaEncoder) tokens(b []byte, from, to int) []byte {
	if v.noVisibleText(from, to) {
		return b
	}
	b = v.text(append(b, v.token[0]...), from, to)
	b = append(b, v.token[1]...)
	if v.ids {
		b = v.generation.ids(b, from, to)
	}
	b = strconv.AppendInt(append(b, v.token[2]...), int64(v.counted(to)), 10)
	return append(b, v.token[3]...)
}

// final is the last event, which is long because it repeats the request.
func (v *llamaEncoder) final(content string) llamacppFinal {
	f := llamacppFinal{
		Content: content, Tokens: []int32{}, Stop: true, Model: v.model, Prompt: v.prompt,
		StopType: "limit", TokensCached: v.Tokens + v.output - 1,
		GenerationSettings: map[string]any{
			"n_predict": v.limit, "ignore_eos": v.ignoreEOS, "stream": v.stream, "temperature": 0.8, "top_k": 40,
			"top_p": 0.95, "min_p": 0.05, "samplers": []string{"penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "temperature"},
		},
	}
	f.StoppingWord = v.stoppedBy()
	switch {
	case f.StoppingWord != "":
		f.StopType = "word"
	case v.eos:
		f.StopType = "eos"
	}
	if !v.fx.noUsage {
		predicted, evaluated := v.counted(v.output), v.Tokens
		f.TokensPredicted, f.TokensEvaluated, f.Timings = &predicted, &evaluated, v.timings()
	}
	return f
}

func (v *llamaEncoder) last(b []byte) []byte {
	return appendEvent(b, "", v.final(""))
}

func (v *llamaEncoder) whole(b []byte) []byte {
	return v.fillHoles(b, appendJSON(nil, v.final(textHole)))
}
