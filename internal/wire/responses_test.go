package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestResponsesInput(t *testing.T) {
	for body, want := range map[string]ResponsesInput{
		`"a b"`: {Text: "a b"},
		`[{"role":"user","content":"a"},{"role":"user","content":[{"type":"input_text","text":"b"}]}]`: {Parts: []ResponsesItem{
			{Role: "user", Content: ResponsesContent{Text: "a"}},
			{Role: "user", Content: ResponsesContent{Parts: []ResponsesPart{{Type: "input_text", Text: "b"}}}},
		}},
	} {
		var got ResponsesInput
		must.Do(t, json.Unmarshal([]byte(body), &got))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		back, err := json.Marshal(got)
		if err != nil || string(back) != body {
			t.Errorf("%s came back as %s (%v)", body, back, err)
		}
	}
	for _, body := range []string{`1`, `{}`, `[1]`, `[{"content":1}]`} {
		if err := json.Unmarshal([]byte(body), new(ResponsesInput)); err == nil {
			t.Errorf("%s was accepted", body)
		}
	}
}

func FuzzResponsesRequest(f *testing.F) {
	f.Add([]byte(`{"input":"a"}`))
	f.Add([]byte(`{"input":[{"role":"user","content":[{"type":"input_text","text":"b"}]}],"stream":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var q ResponsesRequest
		if json.Unmarshal(body, &q) != nil {
			return
		}
		again := must.Get(json.Marshal(q))(t)
		var back ResponsesRequest
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
