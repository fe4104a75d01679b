package sim

import (
	"errors"
	"net/http"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

// statusOverloaded is a status code used only by Anthropic.
const statusOverloaded = 529

var anthropicMessages = &dialect{
	paths:      []string{wire.AnthropicMessagesPath},
	mime:       sseMime,
	read:       readAnthropic,
	errorBody:  anthropicErrorBody,
	overloaded: statusOverloaded,
	streamError: func(p *emulatedServer, c *apiError) []byte {
		return wire.AppendSSE(nil, "error", anthropicErrorBody(p, c))
	},
}

func anthropicErrorBody(_ *emulatedServer, c *apiError) []byte {
	kind := "api_error"
	switch c.status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case statusOverloaded, http.StatusServiceUnavailable:
		kind = "overloaded_error"
	}
	return appendJSON(nil, anthropicErrorResponse{Type: "error", Error: anthropicError{Type: kind, Message: c.message}})
}

// anthropicPages replace the common pages.
var anthropicPages = map[string]page{
	"GET /v1/models": func(s *Server, w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{
			"data":     []any{map[string]string{"type": "model", "id": s.opt.Model, "display_name": s.opt.Model, "created_at": s.clock.start.UTC().Format(time.RFC3339)}},
			"has_more": false, "first_id": s.opt.Model, "last_id": s.opt.Model,
		})
	},
}

func (p *prompt) addAnthropic(q *wire.AnthropicRequest) {
	add := func(c *wire.AnthropicContent) {
		p.AddText(c.Text)
		for _, b := range c.Parts {
			p.AddText(b.Text)
		}
	}
	if q.System != nil {
		add(q.System)
	}
	for i := range q.Messages {
		add(&q.Messages[i].Content)
	}
}

func readAnthropic(in *incoming) (*generation, error) {
	var q wire.AnthropicRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	if q.MaxTokens < 1 {
		return nil, errors.New("max_tokens: Field required")
	}
	p := in.newPrompt()
	p.addAnthropic(&q)
	a, err := in.generation(p, params{model: q.Model, limit: q.MaxTokens, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: q.StopSequences})
	v := &anthropicEncoder{generation: a}
	text := textHole
	v.token = newTemplate(string(appendEvent(nil, wire.AnthropicContentBlockDelta, anthropicEvent{
		Type: wire.AnthropicContentBlockDelta, Index: new(int), Delta: &anthropicDelta{Type: wire.AnthropicTextDelta, Text: &text},
	})), textHole)
	a.encoder = v
	return a, nil
}

type anthropicEncoder struct {
	*generation
	token template
}

func (v *anthropicEncoder) message() *anthropicResponse {
	return &anthropicResponse{
		ID: "msg_" + v.id, Type: "message", Role: "assistant", Model: v.model, Content: []wire.AnthropicBlock{},
		Usage: v.usage(1),
	}
}

func (v *anthropicEncoder) usage(output int) *anthropicUsage {
	if v.fx.noUsage {
		return nil
	}
	return &anthropicUsage{InputTokens: v.Tokens - v.cached, CacheReadInputTokens: v.cached, OutputTokens: output}
}

// early writes the start of the message before the model runs.
func (v *anthropicEncoder) early(b []byte) []byte {
	b = appendEvent(b, wire.AnthropicMessageStart, anthropicEvent{Type: wire.AnthropicMessageStart, Message: v.message()})
	return appendEvent(b, wire.AnthropicPing, anthropicEvent{Type: wire.AnthropicPing})
}

func (v *anthropicEncoder) tokens(b []byte, from, to int) []byte {
	if from == 0 {
		b = appendEvent(b, wire.AnthropicContentBlockStart, anthropicEvent{
			Type: wire.AnthropicContentBlockStart, Index: new(int), ContentBlock: &wire.AnthropicBlock{Type: "text"},
		})
	}
	if v.onlyEnds(from, to) || v.noVisibleText(from, to) {
		return b
	}
	b = v.text(append(b, v.token[0]...), from, to)
	return append(b, v.token[1]...)
}

// reason returns why the answer ended, and the stop string if there was one.
func (v *anthropicEncoder) reason() (reason, sequence *string) {
	words, stop := "max_tokens", v.stoppedBy()
	switch {
	case stop != "":
		words, sequence = "stop_sequence", &stop
	case v.finish == finishStop:
		words = "end_turn"
	}
	return &words, sequence
}

func (v *anthropicEncoder) last(b []byte) []byte {
	reason, sequence := v.reason()
	b = appendEvent(b, wire.AnthropicContentBlockStop, anthropicEvent{Type: wire.AnthropicContentBlockStop, Index: new(int)})
	b = appendEvent(b, wire.AnthropicMessageDelta, anthropicEvent{
		Type: wire.AnthropicMessageDelta, Delta: &anthropicDelta{StopReason: reason, StopSequence: sequence}, Usage: v.usage(v.counted(v.output)),
	})
	return appendEvent(b, wire.AnthropicMessageStop, anthropicEvent{Type: wire.AnthropicMessageStop})
}

func (v *anthropicEncoder) whole(b []byte) []byte {
	m := v.message()
	m.Content = []wire.AnthropicBlock{{Type: "text", Text: textHole}}
	m.StopReason, m.StopSequence = v.reason()
	m.Usage = v.usage(v.counted(v.output))
	return v.fillHoles(b, appendJSON(nil, m))
}
