package sim

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/wire"
)

// A chunkReading is the part of a chunk that a client reads.
type chunkReading struct {
	Choices  int
	Kind     wire.OpenAIKind
	Text     string
	TokenIDs int
	Finish   string
	Usage    wire.OpenAICounts
	HasUsage bool
	Error    string
	Failed   bool
}

// A client can read the chunks that the server writes.
func TestChunksReadBack(t *testing.T) {
	stop, hi := "stop", "hi"
	for _, tc := range []struct {
		name  string
		chunk any
		want  chunkReading
	}{
		{
			"completion",
			openaiCompletion{Choices: []openaiCompletionChoice{{Text: "a<b", FinishReason: &stop, TokenIDs: []int32{1, 2}}}, Usage: &openaiUsage{PromptTokens: 3, CompletionTokens: 4}},
			chunkReading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "a<b", TokenIDs: 2, Finish: "stop", HasUsage: true, Usage: wire.OpenAICounts{Prompt: 3, Completion: 4}},
		},
		{"chat", openaiChatChunk{Choices: []openaiChatChoice{{Delta: openaiChatDelta{Role: "assistant", Content: &hi}}}}, chunkReading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "hi"}},
		{"reasoning", openaiChatChunk{Choices: []openaiChatChoice{{Delta: openaiChatDelta{Reasoning: &hi, ReasoningContent: &hi}}}}, chunkReading{Choices: 1, Kind: wire.OpenAIReasoningToken, Text: "hi"}},
		{"error", openaiErrorResponse{Error: openaiError{Message: "no", Code: 500}}, chunkReading{Failed: true, Error: "no"}},
	} {
		b := must.Get(json.Marshal(tc.chunk))(t)
		var d wire.OpenAIDelta
		must.Do(t, d.Decode(b))
		got := chunkReading{d.Choices, d.Kind, string(d.Text), d.TokenIDs, string(d.Finish), d.Usage, d.HasUsage, string(d.Error), d.Failed}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", tc.name, b, diff)
		}
	}
}
