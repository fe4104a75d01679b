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

	"tacho/internal/jinja"
	"tacho/internal/wholefile"
)

// A Message is one entry of a conversation.
type Message struct{ Role, Content string }

// A ChatTemplate turns a conversation into the text the model is given, as the
// server does with chat requests. It is safe for concurrent use.
type ChatTemplate struct {
	template  *jinja.Template
	variables map[string]any // the special tokens the template names
}

// errNoChatTemplate says that a model has no chat template.
var errNoChatTemplate = errors.New("the model has no chat template")

// LoadChatTemplate reads the chat template of the model in a directory. The
// error says so where it cannot be rendered.
func LoadChatTemplate(dir string) (*ChatTemplate, error) {
	config, err := readOptional(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		return nil, fmt.Errorf("load a chat template: %w", err)
	}
	source, err := readOptional(filepath.Join(dir, "chat_template.jinja"))
	if err != nil {
		return nil, fmt.Errorf("load a chat template: %w", err)
	}
	if source == nil {
		other, err := readOptional(filepath.Join(dir, "chat_template.json"))
		if err != nil {
			return nil, fmt.Errorf("load a chat template: %w", err)
		}
		for _, file := range [][]byte{other, config} {
			text, err := templateIn(file)
			if err != nil {
				return nil, fmt.Errorf("load a chat template from %s: %w", dir, err)
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
	return newChatTemplate(string(source), config)
}

// readOptional is the contents of a file, nil where there is none.
func readOptional(path string) ([]byte, error) {
	b, err := wholefile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// templateIn is the chat_template of a JSON file: a string, or a list of
// named ones, of which it is the default.
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

// templateTokens are the special tokens that templates name.
var templateTokens = []string{"bos_token", "eos_token", "unk_token", "pad_token"}

// newChatTemplate parses a template; config is the tokenizer_config.json that
// names the special tokens, or nil.
func newChatTemplate(source string, config []byte) (*ChatTemplate, error) {
	template, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("the chat template cannot be rendered here: %w", err)
	}
	t := &ChatTemplate{template: template, variables: map[string]any{}}
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

// ChatOptions are what a chat request says besides its messages.
type ChatOptions struct {
	// AddGenerationPrompt ends the text where the model is to answer.
	AddGenerationPrompt bool
	// Tools is a JSON list of functions the model may call, or nil.
	Tools json.RawMessage
	// Extra is further variables (enable_thinking), as chat_template_kwargs.
	Extra map[string]any
	// Now is the time that templates which tell the date go by.
	Now time.Time
}

// Render is the text of a conversation. The template puts special tokens in
// itself: encode what it returns without adding them again.
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
	if err != nil {
		return "", fmt.Errorf("render a chat: %w", err)
	}
	return text, nil
}
