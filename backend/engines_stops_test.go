//go:build engines

package backend_test

import (
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
)

// checkShortAnswers checks cases that simulators do not produce: answers of one token, possibly without text, and
// answers that stop on their own, with a last token without text.
func checkShortAnswers(t *testing.T, server string, kind backend.Kind) {
	t.Helper()
	const each = 30
	one := newBackend(t, kind.Name, server, backend.Options{Model: "tiny", KeepText: true})
	textless := 0
	for i := range each {
		got := send(t.Context(), t, one, &tacho.Request{Input: tacho.Input{Text: "on the other hand " + string(rune('a'+i))}, MaxTokens: 1, IgnoreEOS: kind.ExactLength})
		if got.Failure != nil || got.Output != 1 || len(got.Events) != 1 {
			t.Errorf("one token, %d: %v, %d tokens in %d events", i, got.Failure, got.Output, len(got.Events))
		}
		if got.Text == "" {
			textless++
		}
	}
	b := newBackend(t, kind.Name, server, backend.Options{Model: "tiny", Extra: map[string]any{"temperature": 1}})
	stopped, alone, finishes := 0, 0, map[string]int{}
	for i := range each {
		got := send(t.Context(), t, b, &tacho.Request{Input: tacho.Input{Text: "on the other hand " + string(rune('a'+i))}, MaxTokens: 64})
		if got.Failure != nil || len(got.Events) > got.Output {
			t.Errorf("a natural stop, %d: %v, %d tokens in %d events, finish %q", i, got.Failure, got.Output, len(got.Events), got.Finish)
		}
		if got.Output < 64 {
			stopped++
		}
		if len(got.Events) == got.Output {
			alone++
		}
		finishes[got.Finish]++
	}
	t.Logf("%d of %d answers of one token had no text; %d stopped by themselves (%v), %d with an event for each token", textless, each, stopped, finishes, alone)
	if stopped < each/2 {
		t.Error("hardly an answer stopped by itself")
	}
	// A busy server sends some tokens together, and these two protocols send nothing for a token without a complete
	// character.
	if bytewise := kind.Name == "openai-responses" || kind.Name == "anthropic"; alone == 0 || !bytewise && alone < each/4 {
		t.Error("the token that stops an answer has no event")
	}
}
