package backend

import (
	"bytes"
	"strings"

	"tacho"
	"tacho/wire/jsonscan"
	"tacho/wire/responses"
)

var openAIResponses = Kind{
	Name:        "openai-responses",
	Aliases:     []string{"responses"},
	Doc:         "the OpenAI responses endpoint: text or messages",
	Endpoint:    responses.Path,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, Messages: true},
	ExactLength: true,
	carries:     []string{"temperature", "top_p"},
	encode:      encodeResponses,
	decoder:     func(*Options) decoder { return new(responsesDecoder) },
	live:        []string{`"delta":"`, `"delta": "`},
	models:      openAIModels,
	count:       countChatTokens,
	flush:       resetPrefixCache,
}

func encodeResponses(o *Options, r *tacho.Request) ([]byte, error) {
	keep := false // the server is to forget the response
	q := responses.Request{
		Model: modelOf(o, r), Input: responses.Input{Text: r.Input.Text}, MaxOutputTokens: r.MaxTokens, Stream: true, Store: &keep,
		Temperature: o.Sampling.Temperature, TopP: o.Sampling.TopP, IgnoreEOS: r.IgnoreEOS,
	}
	for _, m := range r.Input.Messages {
		q.Input.Items = append(q.Input.Items, responses.Item{Role: m.Role, Content: responses.Content{Text: m.Content}})
	}
	return marshalWith(&q, o.Extra, r.Extra)
}

// A responsesDecoder reads events by their type, which is in the payload too.
type responsesDecoder struct {
	scan                             jsonscan.Scanner
	kind, text, finish, message, own []byte
	usage                            tacho.Usage
	counted, failed                  bool
	times                            tacho.ServerTimes // llama.cpp tells them
}

func (d *responsesDecoder) decode(payload []byte, c *chunk) error {
	d.kind, d.text, d.finish, d.message, d.own = d.kind[:0], d.text[:0], d.finish[:0], d.message[:0], d.own[:0]
	d.usage, d.counted, d.failed, d.times = tacho.Usage{}, false, false, tacho.ServerTimes{}
	if err := scanObject(&d.scan, payload, d.member); err != nil {
		return err
	}
	kind := string(d.kind)
	switch kind {
	case responses.Completed, responses.Incomplete:
		c.end, c.finish = true, d.finish
		c.counted, c.usage = d.counted, d.usage
		c.timed, c.times = d.times != tacho.ServerTimes{}, d.times
		if len(d.finish) == 0 {
			c.finish = bytes.TrimPrefix(d.kind, []byte("response."))
		}
	case responses.Failed, responses.ErrorEvent:
		c.failed, c.message = true, d.message
		if len(d.message) == 0 {
			c.message = d.own
		}
	default:
		c.failed, c.message = d.failed, d.message
		if strings.HasSuffix(kind, ".delta") && len(d.text) > 0 {
			c.token, c.text, c.kind = true, d.text, responseKind(kind)
		}
	}
	return nil
}

func responseKind(event string) tacho.Kind {
	switch event {
	case responses.ReasoningTextDelta, responses.ReasoningSummary:
		return tacho.Reasoning
	case responses.FunctionCallArgDelta:
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
	case "message": // of an error event
		d.own, _ = s.String(d.own[:0])
	case "error":
		d.message, d.failed = s.Failure(d.message[:0])
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
				d.usage.Cached = s.Natural()
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
