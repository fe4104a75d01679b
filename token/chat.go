package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/jinja"
)

// Message is one entry of a conversation.
type Message struct{ Role, Content string }

// ChatTemplate renders a conversation into the prompt text, as a server does for chat
// requests. It is safe for concurrent use.
type ChatTemplate struct {
	template  *jinja.Template
	path      string         // of the template
	variables map[string]any // special tokens used by the template
}

// errNoChatTemplate means that the model's files contain no chat template.
var errNoChatTemplate = errors.New("the model has no chat template")

// LoadChatTemplate reads the chat template from a model directory. It returns an error if
// the directory has no template or if this package cannot render the template.
func LoadChatTemplate(dir string) (*ChatTemplate, error) {
	config, err := readOptional(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		return nil, fmt.Errorf("load a chat template: %w", err)
	}
	path := filepath.Join(dir, "chat_template.jinja")
	source, err := readOptional(path)
	if err != nil {
		return nil, fmt.Errorf("load a chat template: %w", err)
	}
	if source == nil {
		for _, name := range []string{"chat_template.json", configFile} {
			path = filepath.Join(dir, name)
			file, err := readOptional(path)
			if err != nil {
				return nil, fmt.Errorf("load a chat template: %w", err)
			}
			text, err := templateIn(file)
			if err != nil {
				return nil, fmt.Errorf("load a chat template from %s: %w", path, err)
			}
			if text != "" {
				source = []byte(text)
				break
			}
		}
	}
	if source == nil {
		return nil, fmt.Errorf("load a chat template from %s: %w", dir, errNoChatTemplate)
	}
	return newChatTemplate(string(source), config, path)
}

// readOptional returns the contents of a file, or nil if the file does not exist.
func readOptional(path string) ([]byte, error) {
	b, err := atomicfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// templateIn returns the chat_template of a JSON file. The field is a string or a list of
// named templates; from a list, templateIn takes the template named "default".
func templateIn(file []byte) (string, error) {
	if file == nil {
		return "", nil
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(file, &config); err != nil {
		return "", err
	}
	if len(config.Template) == 0 || bytes.Equal(config.Template, []byte("null")) {
		return "", nil
	}
	var text string
	if json.Unmarshal(config.Template, &text) == nil {
		return text, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(config.Template, &named); err != nil {
		return "", fmt.Errorf("chat_template: neither a string nor a list: %w", err)
	}
	for _, t := range named {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", errors.New("chat_template: none is named default")
}

// templateTokens are the special tokens passed to templates as variables.
var templateTokens = []string{"bos_token", "eos_token", "unk_token", "pad_token"}

// newChatTemplate parses the template in the file path. config is the
// tokenizer_config.json with the special tokens, or nil.
func newChatTemplate(source string, config []byte, path string) (*ChatTemplate, error) {
	template, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("tacho cannot render the chat template %s: %w", path, err)
	}
	t := &ChatTemplate{template: template, path: path, variables: map[string]any{}}
	if config == nil {
		return t, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(config, &fields); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	for _, name := range templateTokens {
		if text, ok := tokenText(fields[name]); ok {
			t.variables[name] = text
		}
	}
	return t, nil
}

// tokenText reads "<s>" or {"content": "<s>", ...}.
func tokenText(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text, true
	}
	var object struct{ Content string }
	if json.Unmarshal(raw, &object) == nil && object.Content != "" {
		return object.Content, true
	}
	return "", false
}

// ChatOptions are the template inputs of a chat request besides its messages.
type ChatOptions struct {
	// AddGenerationPrompt ends the text with the header of the assistant's reply.
	AddGenerationPrompt bool
	// Tools is a JSON list of functions the model may call, or nil.
	Tools json.RawMessage
	// Extra holds more template variables (enable_thinking), like chat_template_kwargs.
	Extra map[string]any
	// Now is the time used by templates that print the date.
	Now time.Time
}

// Render returns the prompt text of a conversation. The text already contains special
// tokens: encode it with addSpecial false.
func (t *ChatTemplate) Render(messages []Message, o ChatOptions) (string, error) {
	variables := map[string]any{"add_generation_prompt": o.AddGenerationPrompt, "tools": nil, "documents": nil}
	maps.Copy(variables, t.variables)
	maps.Copy(variables, o.Extra)
	if len(o.Tools) > 0 {
		tools, err := jinja.FromJSON(o.Tools)
		if err != nil {
			return "", fmt.Errorf("render a chat: tools: %w", err)
		}
		variables["tools"] = tools
	}
	list := make([]any, len(messages))
	for i, m := range messages {
		list[i] = jinja.NewDict("role", m.Role, "content", m.Content)
	}
	variables["messages"] = list
	text, err := t.template.Render(variables, o.Now)
	var limit *jinja.LimitError
	switch {
	case errors.As(err, &limit):
		return "", fmt.Errorf("%s: %w: use the template of another revision of the model, or remove the file", t.path, err)
	case err != nil:
		return "", fmt.Errorf("%s: %w", t.path, err)
	}
	return text, nil
}
