package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tacho/wire/openai"
)

func TestPrompt(t *testing.T) {
	for _, tc := range []struct {
		wire string
		want openai.Prompt
		out  string // what it is written as; empty if it is not to be read
	}{
		{`"a <b> & c"`, openai.Prompt{Text: "a <b> & c"}, `"a <b> & c"`},
		{`[1,2,3]`, openai.Prompt{IDs: []int32{1, 2, 3}}, `[1,2,3]`},
		{`["a"]`, openai.Prompt{Text: "a"}, `"a"`},
		{`[[4,5]]`, openai.Prompt{IDs: []int32{4, 5}}, `[4,5]`},
		{`[]`, openai.Prompt{IDs: []int32{}}, `[]`},
		{`["a","b"]`, openai.Prompt{}, ""},
		{`{"a":1}`, openai.Prompt{}, ""},
		{`[1.5]`, openai.Prompt{}, ""},
		{`[9999999999]`, openai.Prompt{}, ""},
	} {
		var got openai.Prompt
		err := json.Unmarshal([]byte(tc.wire), &got)
		if (err == nil) != (tc.out != "") {
			t.Errorf("%s: error %v", tc.wire, err)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.wire, diff)
		}
		out, err := got.MarshalJSON()
		if err != nil || string(out) != tc.out {
			t.Errorf("%s: written as %s, %v, want %s", tc.wire, out, err, tc.out)
		}
	}
}

// A stream chunk as a server writes it is one a client reads.
func TestChunksReadBack(t *testing.T) {
	stop, hi := "stop", "hi"
	for _, tc := range []struct {
		name  string
		chunk any
		want  reading
	}{
		{
			"completion",
			openai.Completion{Choices: []openai.CompletionChoice{{Text: "a<b", FinishReason: &stop, TokenIDs: []int32{1, 2}}}, Usage: &openai.Usage{PromptTokens: 3, CompletionTokens: 4}},
			reading{Choices: 1, Kind: openai.ContentToken, Text: "a<b", TokenIDs: 2, Finish: "stop", HasUsage: true, Usage: openai.Counts{Prompt: 3, Completion: 4}},
		},
		{"chat", openai.ChatChunk{Choices: []openai.ChatChoice{{Delta: openai.ChatDelta{Role: "assistant", Content: &hi}}}}, reading{Choices: 1, Kind: openai.ContentToken, Text: "hi"}},
		{"reasoning", openai.ChatChunk{Choices: []openai.ChatChoice{{Delta: openai.ChatDelta{Reasoning: &hi, ReasoningContent: &hi}}}}, reading{Choices: 1, Kind: openai.ReasoningToken, Text: "hi"}},
		{"error", openai.ErrorResponse{Error: openai.Error{Message: "no", Code: 500}}, reading{Failed: true, Error: "no"}},
	} {
		b, err := json.Marshal(tc.chunk)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(t, string(b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", tc.name, b, diff)
		}
	}
}
