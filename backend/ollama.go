package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var ollamaGenerate = Kind{
	Name:       "ollama",
	Aliases:    []string{"ollama-generate"},
	Doc:        "Ollama's generate endpoint: text without the model's template, or text and images with it",
	Endpoint:   wire.OllamaGeneratePath,
	Port:       11434,
	Takes:      Forms{Text: true, Media: true},
	framing:    jsonLines,
	supports:   allSampling,
	about:      wire.OllamaVersionPath,
	signatures: []signature{certain("/", "Ollama is running")},
	encode:     encodeOllama,
	decoder:    func(*Options) decoder { return new(ollamaDecoder) },
	tokenMarks: []string{`"response":"`, `"thinking":"`},
	models:     ollamaModels,
}

var ollamaChat = Kind{
	Name:       "ollama-chat",
	Doc:        "Ollama's chat endpoint: text or messages, with images, through the model's template",
	Endpoint:   wire.OllamaChatPath,
	Port:       11434,
	Takes:      Forms{Text: true, Messages: true, Media: true},
	framing:    jsonLines,
	supports:   allSampling,
	encode:     encodeOllamaChat,
	decoder:    func(*Options) decoder { return new(ollamaDecoder) },
	tokenMarks: []string{`"content":"`, `"thinking":"`},
	models:     ollamaModels,
}

// topLevel lists the fields the server reads outside the options object.
var topLevel = []string{"format", "images", "keep_alive", "logprobs", "messages", "options", "raw", "suffix", "system", "template", "think", "tools", "truncate"}

// ollamaOptions returns the options object and the extra fields outside the object.
func ollamaOptions(o *Options, r *tacho.Request) (options rawJSON, beside map[string]any, err error) {
	s := o.Sampling
	within := s.fields("min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
	rename(within, "repetition_penalty", "repeat_penalty")
	beside = map[string]any{}
	for _, extra := range []map[string]any{o.Extra, r.Extra} {
		for name, value := range extra {
			object, isObject := value.(map[string]any)
			switch {
			case name == "options" && isObject:
				maps.Copy(within, object)
			case name == "tool_choice" && value == "auto": // Ollama always chooses freely
			case name == "tool_choice":
				return nil, nil, fmt.Errorf("tool_choice %v is not supported, because Ollama's model always chooses freely: remove tool_choice", value)
			case slices.Contains(topLevel, name):
				beside[name] = value
			default:
				within[name] = value
			}
		}
	}
	options, err = marshalWith(&wire.OllamaOptions{NumPredict: r.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK}, within)
	return options, beside, err
}

func encodeOllama(o *Options, r *tacho.Request) ([]byte, error) {
	options, beside, err := ollamaOptions(o, r)
	if err != nil {
		return nil, err
	}
	messages, err := readMessages(&r.Input)
	if err != nil {
		return nil, err
	}
	converted, err := ollamaMessage(&messages[0], nil)
	if err != nil {
		return nil, err
	}
	// The model's template places the images, so a prompt with images needs the template.
	return marshalWith(&struct {
		Model   string   `json:"model"`
		Prompt  string   `json:"prompt"`
		Images  []string `json:"images,omitempty"`
		Raw     bool     `json:"raw"`
		Stream  bool     `json:"stream"`
		Options rawJSON  `json:"options"`
	}{modelOf(o, r), converted.Content, converted.Images, len(converted.Images) == 0, true, options}, beside)
}

// ollamaMessage converts a message to the server's format. names are the names of called functions by call id.
func ollamaMessage(m *message, names map[string]string) (wire.OllamaMessage, error) {
	const protocol = "Ollama's protocol"
	out := wire.OllamaMessage{Role: m.role, Content: m.text(), ToolName: names[m.callID]}
	for i := range m.parts {
		switch p := &m.parts[i]; {
		case p.kind == textPart:
		case p.kind != imagePart:
			return out, p.errUnsupported(protocol)
		case p.url != "":
			return out, p.errNeedsData(protocol)
		default:
			out.Images = append(out.Images, p.data)
		}
	}
	for _, c := range m.calls {
		names[c.id] = c.name
		out.ToolCalls = append(out.ToolCalls, wire.OllamaToolCall{Function: wire.OllamaFunctionCall{Name: c.name, Arguments: c.arguments}})
	}
	return out, nil
}

func encodeOllamaChat(o *Options, r *tacho.Request) ([]byte, error) {
	options, beside, err := ollamaOptions(o, r)
	if err != nil {
		return nil, err
	}
	converted, err := readMessages(&r.Input)
	if err != nil {
		return nil, err
	}
	messages := make([]wire.OllamaMessage, len(converted))
	names := map[string]string{}
	for i := range converted {
		if messages[i], err = ollamaMessage(&converted[i], names); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return marshalWith(&struct {
		Model    string               `json:"model"`
		Messages []wire.OllamaMessage `json:"messages"`
		Stream   bool                 `json:"stream"`
		Options  rawJSON              `json:"options"`
	}{modelOf(o, r), messages, true, options}, beside)
}

// An ollamaDecoder decodes the lines of both endpoints.
type ollamaDecoder struct {
	scan           scanner
	text, thinking []byte
	tools          bool
	finish         []byte
	done           bool
	usage          tacho.Usage
	times          tacho.ServerTimes
}

func (d *ollamaDecoder) decode(payload []byte, c *chunk) error {
	*d = ollamaDecoder{scan: d.scan, text: d.text[:0], thinking: d.thinking[:0], finish: d.finish[:0]}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	switch {
	case len(d.text) > 0:
		c.token, c.text, c.content = true, append(d.thinking, d.text...), d.text
	case d.tools:
		c.token, c.kind = true, tacho.ToolCall
	case len(d.thinking) > 0:
		c.token, c.kind, c.text = true, tacho.Reasoning, d.thinking
	}
	if d.done {
		c.end, c.finish = true, d.finish
		c.counted, c.usage = d.usage != tacho.Usage{}, d.usage // the server omits zeros
		c.timed, c.times = d.times != tacho.ServerTimes{}, d.times
	}
	return nil
}

func (d *ollamaDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "response":
		d.text, _ = s.String(d.text[:0])
	case "thinking":
		d.thinking, _ = s.String(d.thinking[:0])
	case "message":
		s.Object(d.messageMember)
	case "done":
		d.done = s.Type() == 't'
	case "done_reason":
		d.finish, _ = s.String(d.finish[:0])
	case "prompt_eval_count":
		d.usage.Prompt = s.Natural()
	case "eval_count":
		d.usage.Completion = s.Natural()
	case "total_duration":
		d.times.Total = time.Duration(s.Natural())
	case "load_duration": // loading the model delays the prompt
		d.times.Queue = time.Duration(s.Natural())
	case "prompt_eval_duration":
		d.times.Prefill = time.Duration(s.Natural())
	case "eval_duration":
		d.times.Decode = time.Duration(s.Natural())
	}
}

func (d *ollamaDecoder) messageMember(key []byte) {
	s := &d.scan
	switch string(key) {
	case "content":
		d.text, _ = s.String(d.text[:0])
	case "thinking":
		d.thinking, _ = s.String(d.thinking[:0])
	case "tool_calls":
		d.tools = s.Len() > 0
	}
}

// ollamaModels lists the models. Only the first includes its context length, because each context length takes
// another query.
func ollamaModels(ctx context.Context, c *client) ([]Model, error) {
	var list struct {
		Models []struct{ Model, Name string }
	}
	if err := c.query(ctx, http.MethodGet, wire.OllamaTagsPath, nil, &list); err != nil {
		return nil, err
	}
	models := make([]Model, len(list.Models))
	for i, m := range list.Models {
		id := cmp.Or(m.Model, m.Name)
		if c.Model+":latest" == id {
			id = c.Model // the name without a tag means this tag
		}
		models[i].ID = id
		if i == 0 || id == c.Model {
			var err error
			if models[i].MaxLen, err = ollamaContext(ctx, c, id); err != nil {
				return nil, err
			}
		}
	}
	return models, nil
}

// ollamaContext returns the context length the server allocates: from the request, the model file, or the loaded
// model. The allocated context is often far shorter than the model's maximum. The server silently truncates longer
// prompts.
func ollamaContext(ctx context.Context, c *client, model string) (int, error) {
	within, _ := c.Extra["options"].(map[string]any)
	for _, given := range []map[string]any{c.Extra, within} {
		if tokens, ok := given["num_ctx"].(float64); ok {
			return int(tokens), nil
		}
	}
	var answer struct {
		Parameters string
		Info       map[string]any `json:"model_info"`
	}
	err := c.query(ctx, http.MethodPost, wire.OllamaShowPath, map[string]string{"model": model}, &answer)
	if err != nil && !errors.Is(err, ErrNoEndpoint) {
		return 0, err
	}
	for line := range strings.Lines(answer.Parameters) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "num_ctx" {
			return strconv.Atoi(words[1])
		}
	}
	if tokens := ollamaLoaded(ctx, c, model); tokens > 0 {
		return tokens, nil
	}
	for name, value := range answer.Info {
		if tokens, ok := value.(float64); ok && strings.HasSuffix(name, ".context_length") {
			return int(tokens), nil
		}
	}
	return 0, nil
}

// ollamaLoaded returns the context length of a loaded model, or 0 if the model is not loaded or the server does not
// report one.
func ollamaLoaded(ctx context.Context, c *client, model string) int {
	var list struct {
		Models []struct {
			Model   string
			Context int `json:"context_length"`
		}
	}
	if c.query(ctx, http.MethodGet, wire.OllamaPsPath, nil, &list) != nil {
		return 0 // best effort
	}
	for _, m := range list.Models {
		if m.Model == model || m.Model == model+":latest" {
			return m.Context
		}
	}
	return 0
}
