package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var geminiStream = Kind{
	Name:       "gemini",
	Doc:        "Gemini's streamGenerateContent: text or messages, with images, audio and video; several tokens per event",
	Endpoint:   "/v1beta/models/" + modelPlaceholder + ":streamGenerateContent?alt=sse", // without alt=sse, a stream is one JSON list
	Port:       443,
	Takes:      Forms{Text: true, Messages: true, Media: true},
	supports:   []string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"},
	keyName:    geminiKeyHeader,
	signatures: []signature{certain(geminiModelsPath, `"name":"models/`)},
	encode:     encodeGemini,
	decoder:    func(*Options) decoder { return new(geminiDecoder) },
	tokenMarks: []string{`"text":"`, `"text": "`},
	models:     geminiModels,
	count:      countGeminiTokens,
}

func encodeGemini(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	q := geminiRequest{GenerationConfig: geminiGenerationConfig{
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
		q.Tools = []geminiTool{{}}
	}
	for _, f := range tools.functions {
		q.Tools[0].FunctionDeclarations = append(q.Tools[0].FunctionDeclarations, geminiFunctionDeclaration(f))
	}
	if tools.choice != "" {
		q.ToolConfig = new(geminiToolConfig)
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
func addContents(q *geminiRequest, in *tacho.Input) error {
	messages, err := readMessages(in)
	if err != nil {
		return err
	}
	names := map[string]string{} // function names by call id
	for i := range messages {
		m := &messages[i]
		content := geminiContent{Role: "user"}
		for _, c := range m.calls {
			names[c.id] = c.name
		}
		switch m.role {
		case "system", "developer":
			if q.SystemInstruction == nil {
				q.SystemInstruction = new(geminiContent)
			}
			q.SystemInstruction.Parts = append(q.SystemInstruction.Parts, geminiPart{Text: m.text()})
			continue
		case "tool":
			content.Parts = []geminiPart{{FunctionResponse: &geminiFunctionResponse{Name: names[m.callID], Response: geminiFunctionResult{Result: m.text()}}}}
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

func geminiParts(m *message) (parts []geminiPart, err error) {
	for i := range m.parts {
		p := &m.parts[i]
		switch {
		case p.kind == textPart && p.text == "" && len(m.calls) > 0: // a message with function calls needs no text
		case p.kind == textPart:
			parts = append(parts, geminiPart{Text: p.text})
		case p.url != "":
			if err := p.checkReachable("Gemini's protocol"); err != nil {
				return nil, err
			}
			parts = append(parts, geminiPart{FileData: &geminiFile{FileURI: p.url}})
		default:
			parts = append(parts, geminiPart{InlineData: &geminiBlob{MIMEType: p.mime, Data: p.data}})
		}
	}
	for _, c := range m.calls {
		parts = append(parts, geminiPart{FunctionCall: &geminiFunctionCall{Name: c.name, Args: c.arguments}})
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
	var list struct {
		Models []struct {
			Name             string `json:"name"` // with the prefix models/
			InputTokenLimit  int    `json:"inputTokenLimit"`
			OutputTokenLimit int    `json:"outputTokenLimit"`
		} `json:"models"`
	}
	if err := c.query(ctx, http.MethodGet, geminiModelsPath, nil, &list); err != nil {
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
	var q geminiRequest
	if err := addContents(&q, in); err != nil {
		return 0, err
	}
	if s := q.SystemInstruction; s != nil {
		q.Contents = append(q.Contents, geminiContent{Role: "user", Parts: s.Parts})
	}
	var answer struct {
		TotalTokens int `json:"totalTokens"`
	}
	err := c.query(ctx, http.MethodPost, "/v1beta/models/"+modelPlaceholder+":countTokens", struct {
		Contents []geminiContent `json:"contents"`
	}{q.Contents}, &answer)
	return answer.TotalTokens, err
}

// geminiKeyHeader is the header for the API key.
const geminiKeyHeader = "X-Goog-Api-Key"

const geminiModelsPath = "/v1beta/models"

// A geminiRequest is the body of a request.
type geminiRequest struct {
	Contents          []geminiContent        `json:"contents"`
	SystemInstruction *geminiContent         `json:"systemInstruction,omitempty"`
	GenerationConfig  geminiGenerationConfig `json:"generationConfig"`
	Tools             []geminiTool           `json:"tools,omitempty"`
	ToolConfig        *geminiToolConfig      `json:"toolConfig,omitempty"`
}

// A geminiTool is a list of functions the model may call.
type geminiTool struct {
	FunctionDeclarations []geminiFunctionDeclaration `json:"functionDeclarations"`
}

// A geminiFunctionDeclaration is one function.
type geminiFunctionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// geminiToolConfig selects whether the model must call a function.
type geminiToolConfig struct {
	FunctionCallingConfig geminiFunctionCallingConfig `json:"functionCallingConfig"`
}

// geminiFunctionCallingConfig is the only member of a geminiToolConfig.
type geminiFunctionCallingConfig struct {
	Mode                 string   `json:"mode"` // AUTO, ANY or NONE
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

// geminiContent is one entry of a conversation. The model's role is "model".
type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

// A geminiPart is one piece of geminiContent. Exactly one field is set.
type geminiPart struct {
	Text             string                  `json:"text,omitempty"`
	InlineData       *geminiBlob             `json:"inlineData,omitempty"`
	FileData         *geminiFile             `json:"fileData,omitempty"`
	FunctionCall     *geminiFunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *geminiFunctionResponse `json:"functionResponse,omitempty"`
}

// A geminiBlob is an image, audio or a video, in base64.
type geminiBlob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

// A geminiFile is an image, audio or a video at a URL.
type geminiFile struct {
	MIMEType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

// A geminiFunctionCall is the model's call of a function.
type geminiFunctionCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// A geminiFunctionResponse is the result of a function call.
type geminiFunctionResponse struct {
	Name     string               `json:"name"`
	Response geminiFunctionResult `json:"response"`
}

// geminiFunctionResult wraps the result of a function, because the protocol requires an object.
type geminiFunctionResult struct {
	Result string `json:"result"`
}

// MarshalJSON implements json.Marshaler. A part without other fields is a text, even if the text is empty.
func (p geminiPart) MarshalJSON() ([]byte, error) {
	if p == (geminiPart{Text: p.Text}) {
		return wire.Marshal(struct {
			Text string `json:"text"`
		}{p.Text})
	}
	type part geminiPart // without this method
	return wire.Marshal(part(p))
}

// geminiGenerationConfig holds sampling parameters and stop conditions.
type geminiGenerationConfig struct {
	MaxOutputTokens  int      `json:"maxOutputTokens,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"topP,omitempty"`
	TopK             *int     `json:"topK,omitempty"`
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	PresencePenalty  *float64 `json:"presencePenalty,omitempty"`
}
