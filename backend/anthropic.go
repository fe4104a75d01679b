package backend

import (
	"context"
	"net/http"

	"tacho"
	"tacho/wire/anthropic"
	"tacho/wire/jsonscan"
	"tacho/wire/openai"
)

var anthropicMessages = Kind{
	Name:        "anthropic",
	Aliases:     []string{"anthropic-messages", "messages"},
	Doc:         "Anthropic's messages endpoint, as several servers offer it: text or messages",
	Endpoint:    anthropic.MessagesPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, Messages: true},
	carries:     []string{"temperature", "top_p", "top_k"},
	keyName:     "X-Api-Key",
	header:      http.Header{"Anthropic-Version": {anthropic.Version}},
	signs:       []sign{says(openai.ModelsPath, `"type":"model"`)},
	encode:      encodeAnthropic,
	decoder:     func(*Options) decoder { return new(anthropicDecoder) },
	live:        []string{`"text":"`, `"text": "`, `"thinking":"`, `"thinking": "`, `"partial_json":"`, `"partial_json": "`},
	models:      openAIModels,
	count:       countAnthropicTokens,
}

// anthropicRequest puts the system's messages where the protocol has them.
func anthropicRequest(o *Options, in *tacho.Input, model string) anthropic.Request {
	q := anthropic.Request{Model: model, Temperature: o.Sampling.Temperature, TopP: o.Sampling.TopP, TopK: o.Sampling.TopK}
	if in.Messages == nil {
		q.Messages = []anthropic.Message{{Role: "user", Content: anthropic.Content{Text: in.Text}}}
	}
	for _, m := range in.Messages {
		if m.Role == "system" {
			q.System = &anthropic.Content{Text: m.Content}
			continue
		}
		q.Messages = append(q.Messages, anthropic.Message{Role: m.Role, Content: anthropic.Content{Text: m.Content}})
	}
	return q
}

func encodeAnthropic(o *Options, r *tacho.Request) ([]byte, error) {
	q := anthropicRequest(o, &r.Input, modelOf(o, r))
	q.MaxTokens, q.Stream = r.MaxTokens, true
	return marshalWith(&q, o.Extra, r.Extra)
}

// An anthropicDecoder reads events by their type. The input is counted in the
// first of them and the output in the last.
type anthropicDecoder struct {
	scan    jsonscan.Scanner
	event   []byte
	delta   []byte // its type
	text    []byte
	finish  []byte
	usage   tacho.Usage
	parts   [3]int // of the input: new, written to the cache, read from it
	counted bool
	message []byte
	failed  bool
}

func (d *anthropicDecoder) decode(payload []byte, c *chunk) error {
	d.event, d.delta, d.text, d.finish, d.message = d.event[:0], d.delta[:0], d.text[:0], d.finish[:0], d.message[:0]
	d.counted, d.failed = false, false
	if err := scanObject(&d.scan, payload, d.member); err != nil {
		return err
	}
	c.failed, c.message = d.failed, d.message
	switch string(d.event) {
	case anthropic.ContentBlockDelta:
		c.text, c.token = d.text, len(d.text) > 0
		switch string(d.delta) {
		case anthropic.ThinkingDelta:
			c.kind = tacho.Reasoning
		case anthropic.InputJSONDelta:
			c.kind = tacho.ToolCall
		case anthropic.TextDelta:
		default: // signatures and citations were not generated
			c.token, c.text = false, nil
		}
	case anthropic.MessageStop:
		c.end = true
	}
	c.finish = d.finish
	if d.counted && string(d.event) == anthropic.MessageDelta {
		d.usage.Prompt, d.usage.Cached = d.parts[0]+d.parts[1]+d.parts[2], d.parts[2]
		c.counted, c.usage = true, d.usage
	}
	return nil
}

func (d *anthropicDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "type":
		d.event, _ = s.String(d.event[:0])
	case "message":
		s.Object(func(key []byte) {
			if string(key) == "usage" {
				d.counted = s.Object(d.count)
			}
		})
	case "usage":
		d.counted = s.Object(d.count)
	case "delta":
		s.Object(d.deltaMember)
	case "error":
		d.message, d.failed = s.Failure(d.message[:0])
	}
}

func (d *anthropicDecoder) deltaMember(key []byte) {
	s := &d.scan
	switch string(key) {
	case "type":
		d.delta, _ = s.String(d.delta[:0])
	case "text", "thinking", "partial_json":
		d.text, _ = s.String(d.text)
	case "stop_reason":
		d.finish, _ = s.String(d.finish[:0])
	}
}

func (d *anthropicDecoder) count(key []byte) {
	s := &d.scan
	switch string(key) {
	case "input_tokens":
		d.parts[0] = s.Natural()
	case "cache_creation_input_tokens":
		d.parts[1] = s.Natural()
	case "cache_read_input_tokens":
		d.parts[2] = s.Natural()
	case "output_tokens":
		d.usage.Completion = s.Natural()
	}
}

func countAnthropicTokens(ctx context.Context, c *client, text string) (int, error) {
	q := anthropicRequest(&Options{}, &tacho.Input{Text: text}, c.Model)
	var answer anthropic.CountTokensResponse
	err := c.ask(ctx, http.MethodPost, anthropic.CountTokensPath, struct {
		Model    string              `json:"model"`
		Messages []anthropic.Message `json:"messages"`
	}{q.Model, q.Messages}, &answer)
	return answer.InputTokens, err
}
