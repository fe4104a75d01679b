package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContent(t *testing.T) {
	for body, want := range map[string]Content{
		`"a b"`:                        {Text: "a b"},
		`[{"type":"text","text":"b"}]`: {Blocks: []Block{{Type: "text", Text: "b"}}},
	} {
		var got Content
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		back, err := json.Marshal(got)
		if err != nil || string(back) != body {
			t.Errorf("%s came back as %s (%v)", body, back, err)
		}
	}
	for _, body := range []string{`1`, `{}`, `[1]`} {
		if err := json.Unmarshal([]byte(body), new(Content)); err == nil {
			t.Errorf("%s was accepted", body)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":4,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"b"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var q Request
		if json.Unmarshal(body, &q) != nil {
			return
		}
		again, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, new(Request)); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
