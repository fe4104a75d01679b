package token

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestChatTemplate(t *testing.T) {
	const source = `{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] | trim }}{{ eos_token }}
{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<assistant>{% endif %}`
	messages := []Message{{"user", " hi "}, {"assistant", "yes"}}
	config := func(template any) []byte {
		return must.Get(json.Marshal(object{"chat_template": template, "bos_token": "<s>", "eos_token": object{"content": "</s>"}}))(t)
	}
	for name, files := range map[string]map[string][]byte{
		"config": {"tokenizer_config.json": config(source)},
		"named":  {"tokenizer_config.json": config([]object{{"name": "tool_use", "template": "x"}, {"name": "default", "template": source}})},
		"jinja":  {"tokenizer_config.json": config("other"), "chat_template.jinja": []byte(source)},
		"json":   {"tokenizer_config.json": config(nil), "chat_template.json": config(source)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, data := range files {
				writeFile(t, filepath.Join(dir, file), data)
			}
			c := must.Get(LoadChatTemplate(dir))(t)
			got := must.Get(c.Render(messages, ChatOptions{AddGenerationPrompt: true, Tools: json.RawMessage(`[{"b":1,"a":"é"}]`)}))(t)
			want := "<s><user>hi</s>\n<assistant>yes</s>\n" + `[{"b": 1, "a": "é"}]` + "<assistant>"
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestChatTemplateErrors(t *testing.T) {
	if _, err := LoadChatTemplate(t.TempDir()); !errors.Is(err, errNoChatTemplate) {
		t.Errorf("no files: %v", err)
	}
	for want, file := range map[string]string{
		"cannot render": `{"chat_template": "{% for %}"}`,
		"none is named": `{"chat_template": [{"name": "x", "template": "y"}]}`,
		"neither":       `{"chat_template": 3}`,
		"invalid":       `{"chat_template": x}`,
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "tokenizer_config.json"), []byte(file))
		if _, err := LoadChatTemplate(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	c := must.Get(newChatTemplate("{{ raise_exception('no tools, please') }}{{ strftime_now('%Y') }}", nil, ""))(t)
	if _, err := c.Render(nil, ChatOptions{Now: time.Now()}); err == nil || !strings.Contains(err.Error(), "no tools, please") {
		t.Errorf("refused: %v", err)
	}
	if _, err := c.Render(nil, ChatOptions{Tools: json.RawMessage("{")}); err == nil {
		t.Error("broken tools: no error")
	}
}
