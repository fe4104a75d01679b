package backend

import (
	"context"
	"net/http"
	"strings"

	"tacho"
	"tacho/wire/gemini"
	"tacho/wire/jsonscan"
)

var geminiStream = Kind{
	Name:     "gemini",
	Doc:      "Gemini's streamGenerateContent: text or messages; events of many tokens",
	Endpoint: gemini.StreamPath,
	Port:     443,
	Takes:    Forms{Text: true, Messages: true},
	carries:  []string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"},
	keyName:  gemini.KeyHeader,
	signs:    []sign{says(gemini.ModelsPath, `"name":"models/`)},
	encode:   encodeGemini,
	decoder:  func(*Options) decoder { return new(geminiDecoder) },
	live:     []string{`"text":"`, `"text": "`},
	models:   geminiModels,
	count:    countGeminiTokens,
}

func encodeGemini(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	q := gemini.Request{GenerationConfig: gemini.GenerationConfig{
		MaxOutputTokens: r.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK,
		FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty,
	}}
	if r.Input.Messages == nil {
		q.Contents = []gemini.Content{{Role: "user", Parts: []gemini.Part{{Text: r.Input.Text}}}}
	}
	for _, m := range r.Input.Messages {
		content := gemini.Content{Role: m.Role, Parts: []gemini.Part{{Text: m.Content}}}
		switch m.Role {
		case "system":
			content.Role = ""
			q.SystemInstruction = &content
			continue
		case "assistant":
			content.Role = "model"
		}
		q.Contents = append(q.Contents, content)
	}
	return marshalWith(&q, o.Extra, r.Extra)
}

// A geminiDecoder reads events that hold parts, some of them thoughts, and
// nearly always counts, of which the last are true.
type geminiDecoder struct {
	scan            jsonscan.Scanner
	text, part      []byte
	said            []byte // of text, what is no thought
	content         bool   // a part of the text is no thought
	thought         bool   // the part being read is one
	call            bool   // there is a function call
	finish          []byte
	usage           tacho.Usage
	thoughts        int
	counted, failed bool
	message         []byte
}

func (d *geminiDecoder) decode(payload []byte, c *chunk) error {
	*d = geminiDecoder{scan: d.scan, text: d.text[:0], part: d.part[:0], said: d.said[:0], finish: d.finish[:0], message: d.message[:0]}
	if err := scanObject(&d.scan, payload, d.member); err != nil {
		return err
	}
	c.failed, c.message = d.failed, d.message
	c.text, c.token = d.text, len(d.text) > 0 || d.call
	if len(d.said) > 0 && len(d.said) < len(d.text) {
		c.said = d.said
	}
	switch {
	case d.content:
	case d.call:
		c.kind = tacho.ToolCall
	case c.token:
		c.kind = tacho.Reasoning
	}
	if c.counted = d.counted; d.counted {
		d.usage.Completion += d.thoughts // which the candidates do not count
		d.usage.Reasoning = d.thoughts
		c.usage = d.usage
	}
	c.finish, c.end = d.finish, len(d.finish) > 0
	return nil
}

func (d *geminiDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "candidates":
		s.Array(func() { s.Object(d.candidate) })
	case "usageMetadata":
		d.counted = s.Object(d.count)
	case "error":
		d.message, d.failed = s.Failure(d.message[:0])
	}
}

func (d *geminiDecoder) candidate(key []byte) {
	s := &d.scan
	switch string(key) {
	case "finishReason":
		d.finish, _ = s.String(d.finish[:0])
	case "content":
		s.Object(func(key []byte) {
			if string(key) == "parts" {
				s.Array(d.readPart)
			}
		})
	}
}

func (d *geminiDecoder) readPart() {
	s := &d.scan
	d.part, d.thought = d.part[:0], false
	s.Object(func(key []byte) {
		switch string(key) {
		case "text":
			d.part, _ = s.String(d.part[:0])
		case "thought":
			d.thought = s.Type() == 't'
		case "functionCall":
			d.call = true
		}
	})
	d.text = append(d.text, d.part...)
	if !d.thought {
		d.said = append(d.said, d.part...)
	}
	d.content = d.content || len(d.part) > 0 && !d.thought
}

func (d *geminiDecoder) count(key []byte) {
	s := &d.scan
	switch string(key) {
	case "promptTokenCount":
		d.usage.Prompt = s.Natural()
	case "candidatesTokenCount":
		d.usage.Completion = s.Natural()
	case "thoughtsTokenCount":
		d.thoughts = s.Natural()
	case "cachedContentTokenCount":
		d.usage.Cached = s.Natural()
	}
}

func geminiModels(ctx context.Context, c *client) ([]Model, error) {
	var list gemini.ModelList
	if err := c.ask(ctx, http.MethodGet, gemini.ModelsPath, nil, &list); err != nil {
		return nil, err
	}
	models := make([]Model, len(list.Models))
	for i, m := range list.Models {
		models[i] = Model{ID: strings.TrimPrefix(m.Name, "models/"), MaxLen: m.InputTokenLimit + m.OutputTokenLimit}
	}
	return models, nil
}

func countGeminiTokens(ctx context.Context, c *client, text string) (int, error) {
	var answer gemini.CountTokensResponse
	err := c.ask(ctx, http.MethodPost, gemini.CountTokensPath, gemini.CountTokensRequest{
		Contents: []gemini.Content{{Role: "user", Parts: []gemini.Part{{Text: text}}}},
	}, &answer)
	return answer.TotalTokens, err
}
