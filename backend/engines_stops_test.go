//go:build engines

package backend_test

import (
	"testing"

	"tacho"
	"tacho/backend"
)

// speakShortly wants of a real server what simulators are too regular for:
// answers of one token, which need not have a text, and answers that stop by
// themselves, whose last token has none.
func speakShortly(t *testing.T, server string, kind backend.Kind) {
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
	stops := make([]int, 0, 32)
	for id := 0; id < 257; id += 8 {
		stops = append(stops, id)
	}
	b := newBackend(t, kind.Name, server, backend.Options{Model: "tiny", Extra: map[string]any{"stop_token_ids": stops, "temperature": 1}})
	stopped, alone := 0, 0
	for i := range each {
		got := send(t.Context(), t, b, &tacho.Request{Input: tacho.Input{Text: "on the other hand " + string(rune('a'+i))}, MaxTokens: 64})
		if got.Failure != nil || len(got.Events) > got.Output {
			t.Errorf("a natural stop, %d: %v, %d tokens in %d events, finish %q", i, got.Failure, got.Output, len(got.Events), got.Finish)
		}
		if got.Finish == "stop" {
			stopped++
		}
		if len(got.Events) == got.Output {
			alone++
		}
	}
	t.Logf("%d of %d answers of one token had no text; %d stopped by themselves, %d with an event for each token", textless, each, stopped, alone)
	if stopped == 0 || alone < each/2 { // a busy server sends some tokens together
		t.Error("no answer stopped by itself, or the token that stops it has no event")
	}
}
