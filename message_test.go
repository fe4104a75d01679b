package tacho_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

func TestMessageJSON(t *testing.T) {
	for text, want := range map[string]tacho.Message{
		`{"role":"user","content":"hi"}`:               {Role: "user", Content: "hi"},
		`{"role":"assistant","content":"","answer":2}`: {Role: "assistant", Answer: 2},
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`: {
			Role: "user", Content: "ab", Raw: json.RawMessage(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`),
		},
		`{"role":"tool","content":"42","tool_call_id":"x"}`: {
			Role: "tool", Content: "42", Raw: json.RawMessage(`{"role":"tool","content":"42","tool_call_id":"x"}`),
		},
		`{"role":"assistant","content":null,"tool_calls":[]}`: {
			Role: "assistant", Raw: json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[]}`),
		},
	} {
		var m tacho.Message
		must.Do(t, json.Unmarshal([]byte(text), &m))
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if again, err := json.Marshal(m); err != nil || string(again) != text {
			t.Errorf("%s is written as %s, %v", text, again, err)
		}
	}
	for _, text := range []string{`{"content":"x"}`, `7`, `{"role":""}`} {
		if json.Unmarshal([]byte(text), new(tacho.Message)) == nil {
			t.Errorf("%s is a message", text)
		}
	}
}

func TestQuote(t *testing.T) {
	talk := func() tacho.Request {
		return tacho.Request{InputTokens: 10, Input: tacho.Input{Messages: []tacho.Message{
			{Role: "user", Content: "a"}, {Role: "assistant", Answer: 2}, {Role: "user", Content: "b"},
		}}}
	}
	answers := []tacho.Answer{{Text: "no", Tokens: 100}, {Text: "yes", Tokens: 3}}
	q := talk()
	if !q.Quotes() {
		t.Error("it does not say that it quotes")
	}
	q.Quote(answers)
	want := []tacho.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "yes"}, {Role: "user", Content: "b"}}
	if diff := cmp.Diff(want, q.Input.Messages); diff != "" || q.InputTokens != 13 || q.Quotes() || q.Extra != nil {
		t.Errorf("%d tokens, %s", q.InputTokens, diff)
	}
	q = talk()
	q.Input.Plain = true
	q.Quote(answers)
	if q.Input.Text != "a\nyes\nb" || q.Input.Messages != nil {
		t.Errorf("%+v", q.Input)
	}
	q = talk()
	shared := q.Input.Messages
	q.Input.Messages[0].Raw = json.RawMessage(`{"role":"user","content":[]}`)
	q.Quote(answers)
	body, err := json.Marshal(q.Input.Messages)
	if want := `[{"role":"user","content":[]},{"role":"assistant","content":"yes"},{"role":"user","content":"b"}]`; err != nil || string(body) != want {
		t.Errorf("%s, want %s", body, want)
	}
	if shared[1].Answer != 2 {
		t.Error("it changed what other requests share")
	}
}

func TestHasMedia(t *testing.T) {
	for text, want := range map[string]bool{
		`{"role":"user","content":"hi"}`:                                              false,
		`{"role":"user","content":[{"type":"text","text":"a"}]}`:                      false,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}`: true,
		`{"role":"tool","content":"42","tool_call_id":"x"}`:                           false,
		`{"role":"assistant","content":null,"tool_calls":[]}`:                         false,
	} {
		var m tacho.Message
		must.Do(t, json.Unmarshal([]byte(text), &m))
		if got := m.HasMedia(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
