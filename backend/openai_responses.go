package backend

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var openAIResponses = Kind{
	Name:        "openai-responses",
	Aliases:     []string{"responses"},
	Doc:         "the OpenAI responses endpoint: text or messages, with images and audio",
	Endpoint:    wire.ResponsesPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, Messages: true, Media: true},
	ExactLength: true,
	supports:    allSampling,
	encode:      encodeResponses,
	decoder:     func(*Options) decoder { return new(responsesDecoder) },
	tokenMarks:  []string{`"delta":"`, `"delta": "`},
	models:      openAIModels,
	count:       countChatTokens,
	flush:       resetPrefixCache,
}

func encodeResponses(o *Options, r *tacho.Request) ([]byte, error) {
	keep, s := false, &o.Sampling // the server must not store the response
	q := wire.ResponsesRequest{
		Model: modelOf(o, r), Input: wire.ResponsesInput{Text: r.Input.Text}, MaxOutputTokens: r.MaxTokens, Stream: true, Store: &keep,
		Temperature: s.Temperature, TopP: s.TopP, IgnoreEOS: r.IgnoreEOS && !o.atOpenAI,
		TopK: s.TopK, MinP: s.MinP, FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty, RepetitionPenalty: s.RepetitionPenalty,
	}
	if r.Input.Messages != nil {
		messages, err := readMessages(&r.Input)
		if err != nil {
			return nil, err
		}
		for i := range messages {
			if err := addResponseItems(&q.Input, &messages[i]); err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
		}
	}
	tools, rest, err := takeTools(o.Extra, r.Extra)
	if err != nil {
		return nil, err
	}
	for _, f := range tools.functions {
		q.Tools = append(q.Tools, wire.ResponsesTool{Type: "function", Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	switch {
	case tools.forced:
		q.ToolChoice, err = marshal(responsesForcedTool{Type: "function", Name: tools.choice})
	case tools.choice != "":
		q.ToolChoice, err = marshal(tools.choice)
	}
	if err != nil {
		return nil, err
	}
	return marshalWith(&q, rest)
}

// addResponseItems adds a message. In this protocol, function calls and their results are separate items.
func addResponseItems(in *wire.ResponsesInput, m *message) error {
	if m.role == "tool" {
		in.Parts = append(in.Parts, wire.ResponsesItem{Type: wire.ResponsesFunctionCallOutput, CallID: m.callID, Output: m.text()})
		return nil
	}
	content, err := responseContent(m)
	if err != nil {
		return err
	}
	if content.Text != "" || len(content.Parts) > 0 || len(m.calls) == 0 {
		in.Parts = append(in.Parts, wire.ResponsesItem{Role: m.role, Content: content})
	}
	for _, c := range m.calls {
		in.Parts = append(in.Parts, wire.ResponsesItem{Type: wire.ResponsesFunctionCall, CallID: c.id, Name: c.name, Arguments: string(c.arguments)})
	}
	return nil
}

func responseContent(m *message) (c wire.ResponsesContent, err error) {
	if len(m.parts) == 0 || len(m.parts) == 1 && m.parts[0].kind == textPart {
		return wire.ResponsesContent{Text: m.text()}, nil
	}
	const protocol = "the responses protocol"
	for i := range m.parts {
		p := &m.parts[i]
		one := wire.ResponsesPart{Type: responsesInputText, Text: p.text}
		switch {
		case p.kind == textPart && p.text == "":
			continue
		case p.kind == textPart && m.role == "assistant":
			one.Type = responsesOutputText
		case p.kind == textPart:
		case p.kind == imagePart:
			one = wire.ResponsesPart{Type: responsesInputImage, ImageURL: p.url}
			if p.url == "" {
				one.ImageURL = "data:" + p.mime + ";base64," + p.data
			}
		case p.kind == audioPart && p.url != "":
			return c, p.errNeedsData(protocol)
		case p.kind == audioPart:
			one = wire.ResponsesPart{Type: responsesInputAudio, InputAudio: &wire.ResponsesAudio{Data: p.data, Format: p.format()}}
		default:
			return c, p.errUnsupported(protocol)
		}
		c.Parts = append(c.Parts, one)
	}
	return c, nil
}

// A responsesDecoder decodes events by type. The payload repeats the type of the event.
type responsesDecoder struct {
	scan               scanner
	kind, text, finish []byte
	message            []byte // in an error event
	usage              tacho.Usage
	counted            bool
	times              tacho.ServerTimes // sent by llama.cpp
}

func (d *responsesDecoder) decode(payload []byte, c *chunk) error {
	d.kind, d.text, d.finish, d.message = d.kind[:0], d.text[:0], d.finish[:0], d.message[:0]
	d.usage, d.counted, d.times = tacho.Usage{}, false, tacho.ServerTimes{}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	kind := string(d.kind)
	switch kind {
	case wire.ResponsesCompleted, wire.ResponsesIncomplete:
		c.end, c.finish = true, d.finish
		c.counted, c.usage = d.counted, d.usage
		c.timed, c.times = d.times != tacho.ServerTimes{}, d.times
		if len(d.finish) == 0 {
			c.finish = bytes.TrimPrefix(d.kind, []byte("response."))
		}
	case wire.ResponsesFailed, wire.ResponsesErrorEvent:
		if c.failed = true; len(c.message) == 0 {
			c.message = d.message
		}
	default:
		if strings.HasSuffix(kind, ".delta") && len(d.text) > 0 {
			c.token, c.text, c.kind = true, d.text, responseKind(kind)
		}
	}
	return nil
}

func responseKind(event string) tacho.TokenKind {
	switch event {
	case wire.ResponsesReasoningTextDelta, wire.ResponsesReasoningSummary:
		return tacho.Reasoning
	case wire.ResponsesFunctionCallArgDelta:
		return tacho.ToolCall
	default:
		return tacho.Content
	}
}

func (d *responsesDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "type":
		d.kind, _ = s.String(d.kind[:0])
	case "delta":
		d.text, _ = s.String(d.text[:0])
	case "message": // in an error event
		d.message, _ = s.String(d.message[:0])
	case "response":
		s.Object(d.response)
	case "timings":
		s.Object(func(key []byte) {
			switch string(key) {
			case "prompt_ms":
				d.times.Prefill = millis(s.Float())
			case "predicted_ms":
				d.times.Decode = millis(s.Float())
			}
		})
	}
}

func (d *responsesDecoder) response(key []byte) {
	s := &d.scan
	switch string(key) {
	case "error":
		d.message, _ = s.Failure(d.message[:0])
	case "incomplete_details":
		s.Object(func(key []byte) {
			if string(key) == "reason" {
				d.finish, _ = s.String(d.finish[:0])
			}
		})
	case "usage":
		d.counted = s.Object(d.count)
	}
}

func (d *responsesDecoder) count(key []byte) {
	s := &d.scan
	switch string(key) {
	case "input_tokens":
		d.usage.Prompt = s.Natural()
	case "output_tokens":
		d.usage.Completion = s.Natural()
	case "input_tokens_details":
		s.Object(func(key []byte) {
			if string(key) == "cached_tokens" {
				s.NaturalIfPresent(&d.usage.Cached, &d.usage.TellsCached)
			}
		})
	case "output_tokens_details":
		s.Object(func(key []byte) {
			if string(key) == "reasoning_tokens" {
				d.usage.Reasoning = s.Natural()
			}
		})
	}
}

// A responsesForcedTool names the function the model must call.
type responsesForcedTool struct {
	Type string `json:"type"` // function
	Name string `json:"name"`
}

// Part types.
const (
	responsesInputText  = "input_text"
	responsesOutputText = "output_text" // in an assistant message
	responsesInputImage = "input_image"
	responsesInputAudio = "input_audio"
)
