package wire

import (
	"encoding/json"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// A text block contains its text even if the text is empty. Other blocks contain no text.
func TestAnthropicBlock(t *testing.T) {
	for want, b := range map[string]AnthropicBlock{
		`{"type":"text","text":""}`:                              {Type: AnthropicTextBlock},
		`{"type":"tool_result","tool_use_id":"1","content":"x"}`: {Type: AnthropicToolResultBlock, ToolUseID: "1", Content: "x"},
	} {
		if got, err := json.Marshal(b); err != nil || string(got) != want {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	}
}

func FuzzAnthropicRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":4,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"b"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var q AnthropicRequest
		if json.Unmarshal(body, &q) != nil {
			return
		}
		again := must.Get(json.Marshal(q))(t)
		if err := json.Unmarshal(again, new(AnthropicRequest)); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
