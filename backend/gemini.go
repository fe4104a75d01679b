package backend

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var geminiStream = Kind{
	Name:       "gemini",
	Doc:        "Gemini's streamGenerateContent: text or messages, with images, audio and video; several tokens per event",
	Endpoint:   wire.GeminiStreamPath,
	Port:       443,
	Takes:      Forms{Text: true, Messages: true, Media: true},
	supports:   []string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"},
	keyName:    geminiKeyHeader,
	signatures: []signature{certain(wire.GeminiModelsPath, `"name":"models/`)},
	encode:     encodeGemini,
	decoder:    func(*Options) decoder { return new(geminiDecoder) },
	tokenMarks: []string{`"text":"`, `"text": "`},
	models:     geminiModels,
	count:      countGeminiTokens,
}

func encodeGemini(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	q := wire.GeminiRequest{GenerationConfig: wire.GeminiGenerationConfig{
		MaxOutputTokens: r.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK,
		FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty,
	}}
	if err := addContents(&q, &r.Input); err != nil {
		return nil, err
	}
	tools, rest, err := takeTools(o.Extra, r.Extra)
	if err != nil {
		return nil, err
	}
	if len(tools.functions) > 0 {
		q.Tools = []wire.GeminiTool{{}}
	}
	for _, f := range tools.functions {
		q.Tools[0].FunctionDeclarations = append(q.Tools[0].FunctionDeclarations, wire.GeminiFunctionDeclaration{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	if tools.choice != "" {
		q.ToolConfig = new(wire.GeminiToolConfig)
		c := &q.ToolConfig.FunctionCallingConfig
		switch {
		case tools.forced:
			c.Mode, c.AllowedFunctionNames = "ANY", []string{tools.choice}
		case tools.choice == "required":
			c.Mode = "ANY"
		default:
			c.Mode = strings.ToUpper(tools.choice)
		}
	}
	return marshalWith(&q, rest)
}

// addContents moves system messages to the protocol's system field. In this protocol, a function result refers to
// the function name, not to the call id.
func addContents(q *wire.GeminiRequest, in *tacho.Input) error {
	messages, err := readMessages(in)
	if err != nil {
		return err
	}
	names := map[string]string{} // function names by call id
	for i := range messages {
		m := &messages[i]
		content := wire.GeminiContent{Role: "user"}
		for _, c := range m.calls {
			names[c.id] = c.name
		}
		switch m.role {
		case "system", "developer":
			if q.SystemInstruction == nil {
				q.SystemInstruction = new(wire.GeminiContent)
			}
			q.SystemInstruction.Parts = append(q.SystemInstruction.Parts, wire.GeminiPart{Text: m.text()})
			continue
		case "tool":
			content.Parts = []wire.GeminiPart{{FunctionResponse: &wire.GeminiFunctionResponse{Name: names[m.callID], Response: wire.GeminiFunctionResult{Result: m.text()}}}}
		default:
			if m.role == "assistant" {
				content.Role = "model"
			}
			if content.Parts, err = geminiParts(m); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		q.Contents = append(q.Contents, content)
	}
	return nil
}

func geminiParts(m *message) (parts []wire.GeminiPart, err error) {
	for i := range m.parts {
		p := &m.parts[i]
		switch {
		case p.kind == textPart && p.text == "" && len(m.calls) > 0: // a message with function calls needs no text
		case p.kind == textPart:
			parts = append(parts, wire.GeminiPart{Text: p.text})
		case p.url != "":
			if err := p.checkReachable("Gemini's protocol"); err != nil {
				return nil, err
			}
			parts = append(parts, wire.GeminiPart{FileData: &wire.GeminiFile{FileURI: p.url}})
		default:
			parts = append(parts, wire.GeminiPart{InlineData: &wire.GeminiBlob{MIMEType: p.mime, Data: p.data}})
		}
	}
	for _, c := range m.calls {
		parts = append(parts, wire.GeminiPart{FunctionCall: &wire.GeminiFunctionCall{Name: c.name, Args: c.arguments}})
	}
	return parts, nil
}

// A geminiDecoder decodes events with parts, some of them reasoning. Almost every event carries token counts; the
// last counts are final.
type geminiDecoder struct {
	scan       scanner
	text, part []byte
	answer     []byte // the part of text that is not reasoning
	content    bool   // a part of the text is not reasoning
	thought    bool   // the current part is reasoning
	call       bool   // the event contains a function call
	finish     []byte
	usage      tacho.Usage
	thoughts   int
	counted    bool
}

func (d *geminiDecoder) decode(payload []byte, c *chunk) error {
	*d = geminiDecoder{scan: d.scan, text: d.text[:0], part: d.part[:0], answer: d.answer[:0], finish: d.finish[:0]}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.text, c.token = d.text, len(d.text) > 0 || d.call
	if len(d.answer) > 0 && len(d.answer) < len(d.text) {
		c.content = d.answer
	}
	switch {
	case d.content:
	case d.call:
		c.kind = tacho.ToolCall
	case c.token:
		c.kind = tacho.Reasoning
	}
	if c.counted = d.counted; d.counted {
		d.usage.Completion += d.thoughts // not included in the candidates' count
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
		d.answer = append(d.answer, d.part...)
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
		s.NaturalIfPresent(&d.usage.Cached, &d.usage.TellsCached)
	}
}

func geminiModels(ctx context.Context, c *client) ([]Model, error) {
	var list wire.GeminiModelList
	if err := c.query(ctx, http.MethodGet, wire.GeminiModelsPath, nil, &list); err != nil {
		return nil, err
	}
	models := make([]Model, len(list.Models))
	for i, m := range list.Models {
		models[i] = Model{ID: strings.TrimPrefix(m.Name, "models/"), MaxLen: m.InputTokenLimit + m.OutputTokenLimit}
	}
	return models, nil
}

// countGeminiTokens counts system messages together with the others.
func countGeminiTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	var q wire.GeminiRequest
	if err := addContents(&q, in); err != nil {
		return 0, err
	}
	if s := q.SystemInstruction; s != nil {
		q.Contents = append(q.Contents, wire.GeminiContent{Role: "user", Parts: s.Parts})
	}
	var answer wire.GeminiCountTokensResponse
	err := c.query(ctx, http.MethodPost, wire.GeminiCountTokensPath, wire.GeminiCountTokensRequest{Contents: q.Contents}, &answer)
	return answer.TotalTokens, err
}

// geminiKeyHeader is the header for the API key.
const geminiKeyHeader = "X-Goog-Api-Key"
