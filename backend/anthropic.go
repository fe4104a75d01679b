package backend

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var anthropicMessages = Kind{
	Name:        "anthropic",
	Aliases:     []string{"anthropic-messages", "messages"},
	Doc:         "Anthropic's messages endpoint, offered by several servers: text or messages, with images",
	Endpoint:    wire.AnthropicMessagesPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, Messages: true, Media: true},
	supports:    []string{"temperature", "top_p", "top_k"},
	keyName:     "X-Api-Key",
	header:      http.Header{"Anthropic-Version": {anthropicVersion}},
	signatures:  []signature{certain(wire.OpenAIModelsPath, `"type":"model"`)},
	prefer:      preferOpenAI,
	encode:      encodeAnthropic,
	decoder:     func(*Options) decoder { return new(anthropicDecoder) },
	tokenMarks:  []string{`"text":"`, `"text": "`, `"thinking":"`, `"thinking": "`, `"partial_json":"`, `"partial_json": "`},
	models:      openAIModels,
	count:       countAnthropicTokens,
}

// anthropicRequest moves system messages to the protocol's system field.
func anthropicRequest(o *Options, in *tacho.Input, model string) (wire.AnthropicRequest, error) {
	q := wire.AnthropicRequest{Model: model, Temperature: o.Sampling.Temperature, TopP: o.Sampling.TopP, TopK: o.Sampling.TopK}
	messages, err := readMessages(in)
	if err != nil {
		return q, err
	}
	var system []string
	for i := range messages {
		m := &messages[i]
		if m.role == "system" || m.role == "developer" {
			system = append(system, m.text())
			continue
		}
		if err := addAnthropic(&q, m); err != nil {
			return q, fmt.Errorf("message %d: %w", i, err)
		}
	}
	if len(system) > 0 {
		q.System = &wire.AnthropicContent{Text: strings.Join(system, "\n\n")}
	}
	return q, nil
}

// addAnthropic adds a message. In this protocol, tool results are user messages, and the results of parallel calls
// share one message.
func addAnthropic(q *wire.AnthropicRequest, m *message) error {
	if m.role == "tool" {
		result := wire.AnthropicBlock{Type: wire.AnthropicToolResultBlock, ToolUseID: m.callID, Content: m.text()}
		if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == "user" && isToolResult(&q.Messages[n-1]) {
			q.Messages[n-1].Content.Parts = append(q.Messages[n-1].Content.Parts, result)
			return nil
		}
		q.Messages = append(q.Messages, wire.AnthropicMessage{Role: "user", Content: wire.AnthropicContent{Parts: []wire.AnthropicBlock{result}}})
		return nil
	}
	content, err := anthropicContent(m)
	q.Messages = append(q.Messages, wire.AnthropicMessage{Role: m.role, Content: content})
	return err
}

func isToolResult(m *wire.AnthropicMessage) bool {
	return len(m.Content.Parts) > 0 && m.Content.Parts[0].Type == wire.AnthropicToolResultBlock
}

func anthropicContent(m *message) (c wire.AnthropicContent, err error) {
	if len(m.parts) == 1 && m.parts[0].kind == textPart && len(m.calls) == 0 {
		return wire.AnthropicContent{Text: m.parts[0].text}, nil
	}
	const protocol = "Anthropic's protocol"
	for i := range m.parts {
		p := &m.parts[i]
		switch {
		case p.kind == textPart && p.text == "": // rejected by the server
		case p.kind == textPart:
			c.Parts = append(c.Parts, wire.AnthropicBlock{Type: wire.AnthropicTextBlock, Text: p.text})
		case p.kind != imagePart:
			return c, p.errUnsupported(protocol)
		case p.url != "":
			if err := p.checkReachable(protocol); err != nil {
				return c, err
			}
			c.Parts = append(c.Parts, wire.AnthropicBlock{Type: wire.AnthropicImageBlock, Source: &wire.AnthropicSource{Type: "url", URL: p.url}})
		default:
			c.Parts = append(c.Parts, wire.AnthropicBlock{Type: wire.AnthropicImageBlock, Source: &wire.AnthropicSource{Type: "base64", MediaType: p.mime, Data: p.data}})
		}
	}
	for _, call := range m.calls {
		c.Parts = append(c.Parts, wire.AnthropicBlock{Type: wire.AnthropicToolUseBlock, ID: call.id, Name: call.name, Input: call.arguments})
	}
	return c, nil
}

func encodeAnthropic(o *Options, r *tacho.Request) ([]byte, error) {
	q, err := anthropicRequest(o, &r.Input, modelOf(o, r))
	if err != nil {
		return nil, err
	}
	q.MaxTokens, q.Stream = r.MaxTokens, true
	tools, rest, err := takeTools(o.Extra, r.Extra)
	if err != nil {
		return nil, err
	}
	for i := range tools.functions {
		f := &tools.functions[i]
		q.Tools = append(q.Tools, wire.AnthropicTool{Name: f.Name, Description: f.Description, InputSchema: f.schema()})
	}
	switch {
	case tools.forced:
		q.ToolChoice = &wire.AnthropicToolChoice{Type: "tool", Name: tools.choice}
	case tools.choice == "required":
		q.ToolChoice = &wire.AnthropicToolChoice{Type: "any"}
	case tools.choice != "":
		q.ToolChoice = &wire.AnthropicToolChoice{Type: tools.choice}
	}
	return marshalWith(&q, rest)
}

// An anthropicDecoder decodes events by type. The first event carries the input count, and the last event carries
// the output count.
type anthropicDecoder struct {
	scan    scanner
	event   []byte
	delta   []byte // type of the delta
	text    []byte
	finish  []byte
	usage   tacho.Usage
	parts   [3]int // input tokens: uncached, written to the cache, read from the cache
	counted bool
}

func (d *anthropicDecoder) decode(payload []byte, c *chunk) error {
	d.event, d.delta, d.text, d.finish = d.event[:0], d.delta[:0], d.text[:0], d.finish[:0]
	d.counted = false
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	switch string(d.event) {
	case wire.AnthropicContentBlockDelta:
		c.text, c.token = d.text, len(d.text) > 0
		switch string(d.delta) {
		case wire.AnthropicThinkingDelta:
			c.kind = tacho.Reasoning
		case wire.AnthropicInputJSONDelta:
			c.kind = tacho.ToolCall
		case wire.AnthropicTextDelta:
		default: // signatures and citations are not generated text
			c.token, c.text = false, nil
		}
	case wire.AnthropicMessageStop:
		c.end = true
	}
	c.finish = d.finish
	if d.counted && string(d.event) == wire.AnthropicMessageDelta {
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
		s.NaturalIfPresent(&d.parts[2], &d.usage.TellsCached)
	case "output_tokens":
		d.usage.Completion = s.Natural()
	}
}

func countAnthropicTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	q, err := anthropicRequest(&Options{}, in, c.Model)
	if err != nil {
		return 0, err
	}
	var answer wire.AnthropicCountTokensResponse
	err = c.query(ctx, http.MethodPost, wire.AnthropicCountTokensPath, struct {
		Model    string                  `json:"model"`
		Messages []wire.AnthropicMessage `json:"messages"`
		System   *wire.AnthropicContent  `json:"system,omitempty"`
	}{q.Model, q.Messages, q.System}, &answer)
	return answer.InputTokens, err
}

// preferOpenAI detects a proxy, such as LiteLLM, that answers each client in the client's protocol. The OpenAI
// protocol supports more of the features a benchmark uses.
func preferOpenAI(ctx context.Context, c *client) (*Kind, string) {
	plain, err := newClient(openAI, Options{Client: c.Client, APIKey: c.APIKey, Header: c.Header})
	if err != nil {
		return nil, ""
	}
	sign, err := openAI.known(maxDoubt, func(path string) (*page, error) { return plain.fetch(ctx, path) })
	if err != nil || sign == nil {
		return nil, ""
	}
	return &openAI, fmt.Sprintf("and for other clients %s", sign.holds)
}

// anthropicVersion is the value of the anthropic-version header.
const anthropicVersion = "2023-06-01"
