//go:build oracle

package token

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestChatTemplatesSameAsPython compares rendered chat templates of real models with
// Python's Jinja.
func TestChatTemplatesSameAsPython(t *testing.T) {
	o := newOracle(t)
	now := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	conversations := map[string][]Message{
		"one":      {{"user", "Hello there"}},
		"system":   {{"system", "Be brief. "}, {"user", "  Hi \"you\" <b>\n"}, {"assistant", "Hello!"}, {"user", "Bye"}},
		"thinking": {{"user", "a"}, {"assistant", "<think>\nx\n</think>\n\nb"}, {"user", "c"}},
		"refused":  {{"user", "a"}, {"user", "b"}},
		"empty":    {},
	}
	tools := json.RawMessage(`[{"type":"function","function":{"name":"f","description":"does \"x\"","parameters":{"type":"object","properties":{"a":{"type":"string","description":"é"}},"required":["a"]}}}]`)
	same := 0
	for _, name := range vocabularies {
		dir := filepath.Dir(vocabularyFile(name))
		config := must.Get(readOptional(filepath.Join(dir, "tokenizer_config.json")))(t)
		source := must.Get(templateIn(config))(t)
		if source == "" {
			continue
		}
		template, err := LoadChatTemplate(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for kind, messages := range conversations {
			for _, tools := range []json.RawMessage{nil, tools} {
				for _, generate := range []bool{false, true} {
					variables := map[string]any{"messages": lower(messages), "tools": tools, "documents": nil, "add_generation_prompt": generate}
					maps.Copy(variables, template.variables)
					want := o.ask(t, map[string]any{"kind": "jinja", "template": source, "variables": variables, "now": now.Format("2006-01-02T15:04:05")})
					got, err := template.Render(messages, ChatOptions{AddGenerationPrompt: generate, Tools: tools, Now: now})
					if got != want.Text || (err != nil) != (want.Error != "") {
						t.Errorf("%s, %s: %q, %v\nwant %q, %s", name, kind, got, err, want.Text, want.Error)
					} else {
						same++
					}
				}
			}
		}
	}
	t.Logf("%d renderings the same", same)
	if same < 100 {
		t.Errorf("only %d renderings compared", same)
	}
}

// lower returns messages with lower-case JSON keys.
func lower(messages []Message) []map[string]string {
	out := []map[string]string{}
	for _, m := range messages {
		out = append(out, map[string]string{"role": m.Role, "content": m.Content})
	}
	return out
}
