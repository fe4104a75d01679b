package backend

import (
	"encoding/json"
	"testing"

	"github.com/tacho-bench/tacho"
)

// For any messages and tools, a protocol encodes a body or returns an error.
func FuzzMessages(f *testing.F) {
	f.Add(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}`, `[]`, `"auto"`)
	f.Add(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `[{"type":"function","function":{"name":"f","parameters":{}}}]`, `{"function":{"name":"f"}}`)
	f.Add(`{"role":"tool","tool_call_id":"1","content":"x"}`, `[{"name":"own"}]`, `{"type":"any"}`)
	f.Add(`{"role":"user","content":[{"type":"video_url","video_url":"http://127.0.0.1/x"}]}`, `null`, `null`)
	f.Fuzz(func(t *testing.T, text, tools, choice string) {
		var m tacho.Message
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		extra := map[string]any{}
		for name, value := range map[string]string{"tools": tools, "tool_choice": choice} {
			if json.Valid([]byte(value)) {
				extra[name] = json.RawMessage(value)
			}
		}
		for _, k := range Kinds {
			for _, messages := range [][]tacho.Message{{m}, {{Role: "system", Content: "s"}, m, m}} {
				r := &tacho.Request{Input: tacho.Input{Messages: messages}, MaxTokens: 1, Extra: extra}
				if k.accepts(&r.Input) != nil {
					continue
				}
				if body, err := k.encode(&Options{Model: "m"}, r); err == nil && !json.Valid(body) {
					t.Errorf("%s wrote %s", k.Name, body)
				}
			}
		}
	})
}
