package workload_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

func shape(q tacho.Request) string {
	var out []string
	for _, m := range q.Input.Messages {
		word := m.Role
		if m.Answer > 0 {
			word += fmt.Sprint("=", m.Answer)
		}
		if m.Raw != nil {
			word += "!"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// TestRandomConversations checks that each turn adds the answer and the next question, that
// lengths are exact, and that the system prompt is shared.
func TestRandomConversations(t *testing.T) {
	o := workload.Options{
		Messages: true, Input: workload.Fixed(8), Output: length(t, "uniform(3,5)"), Count: 6, Seed: 2,
		Conversation: workload.ConversationOptions{Turns: length(t, "uniform(2,4)"), ThinkMS: length(t, "uniform(100,900)"), System: 20, Systems: 2, First: workload.Fixed(30)},
	}
	w := make1(t, "conversation", o)
	systems, turns := map[string]bool{}, map[int]bool{}
	for i := range uint64(40) {
		s := must.Get(w.Session(i))(t)
		turns[len(s.Turns)] = true
		want := "system user"
		for k, turn := range s.Turns {
			q := turn.Request
			systems[q.Input.Messages[0].Content] = true
			tokens := 20 + 30 + 8*k
			if shape(q) != want || q.InputTokens != tokens || q.Turn != k || q.Session != i || q.MaxTokens < 3 || q.MaxTokens > 5 {
				t.Errorf("session %d turn %d: %s, %d tokens, want %s, %d", i, k, shape(q), q.InputTokens, want, tokens)
			}
			if k == 0 && turn.Think != 0 || k > 0 && (turn.Think < 100*time.Millisecond || turn.Think > 900*time.Millisecond) {
				t.Errorf("turn %d thinks %v", k, turn.Think)
			}
			want += fmt.Sprintf(" assistant=%d user", k+1)
		}
		again, err := make1(t, "conversation", o).Session(i)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(s) {
			t.Errorf("session %d made again is another", i)
		}
	}
	if len(systems) != 2 || len(turns) != 3 {
		t.Errorf("%d system prompts, %v turns", len(systems), turns)
	}
	warm, err := w.Warmup(1)
	if err != nil || len(warm.Turns) != 1 || systems[warm.Turns[0].Request.Input.Messages[0].Content] {
		t.Errorf("a warm-up has the system prompt of the run: %v", err)
	}
}

func TestToolTurnsAndSubAgents(t *testing.T) {
	w := make1(t, "conversation", workload.Options{
		Messages: true, Input: workload.Fixed(5), Output: workload.Fixed(3),
		Conversation: workload.ConversationOptions{Turns: workload.Fixed(3), Tools: 1, SubAgents: 2},
	})
	s := must.Get(w.Session(0))(t)
	var got []string
	for _, turn := range s.Turns {
		got = append(got, fmt.Sprintf("%v %s", turn.After, shape(turn.Request)))
	}
	want := []string{
		"[] user",
		"[0] assistant! tool!",
		"[0] assistant! tool!",
		"[1 2] user assistant=1 user=2 user=3 assistant! tool!",
		"[] user assistant=1 user=2 user=3 assistant! tool! assistant=4 assistant! tool!",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestConversationsOfFiles checks that the questions of a file are asked and that its
// answers only set the output lengths.
func TestConversationsOfFiles(t *testing.T) {
	for name, text := range map[string]string{
		"s.json":  `[{"conversations":[{"from":"system","value":"be"},{"from":"human","value":"one two"},{"from":"gpt","value":"a b c"},{"from":"human","value":"three"},{"from":"gpt","value":"d"},{"from":"human","value":"unanswered"}]},{"conversations":[]}]`,
		"o.jsonl": `{"messages":[{"role":"system","content":"be"},{"role":"user","content":"one two"},{"role":"assistant","content":"a b c"},{"role":"user","content":"three"},{"role":"assistant","content":"d"},{"role":"user","content":"unanswered"}]}` + "\n" + `{"messages":[]}`,
	} {
		w := make1(t, "conversation", workload.Options{Path: write(t, name, text), Messages: true, Output: workload.Fixed(-1), Conversation: workload.ConversationOptions{ThinkMS: workload.Fixed(50)}})
		s := must.Get(w.Session(0))(t)
		var got []string
		for _, turn := range s.Turns {
			got = append(got, fmt.Sprintf("%s %d %v", shape(turn.Request), turn.Request.MaxTokens, turn.Think))
		}
		if want := []string{"system user 4 0s", "system user assistant=1 user 2 50ms"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if _, err := w.Session(1); !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
		if n := w.Notes(); len(n) != 1 || !strings.Contains(n[0], "1 conversations without a question") {
			t.Errorf("%q", n)
		}
	}
}

// TestSharedPrefixes checks prompts with shared prefixes: every turn starts with the
// global prefix and the prefix of its conversation, carries no history, and has the exact
// length.
func TestSharedPrefixes(t *testing.T) {
	w := make1(t, "conversation", workload.Options{
		Messages: true, Input: workload.Fixed(60), Output: workload.Fixed(5), Count: 3, Seed: 2,
		Conversation: workload.ConversationOptions{Turns: workload.Fixed(3), First: workload.Fixed(100), GlobalRatio: 0.1, ConversationRatio: 0.4},
	})
	words := func(i uint64, k int) []string {
		s, err := w.Session(i)
		if err != nil || len(s.Turns) != 3 {
			t.Fatalf("%d turns: %v", len(s.Turns), err)
		}
		q := s.Turns[k].Request
		if want := []int{100, 60, 60}[k]; shape(q) != "user" || q.InputTokens != want {
			t.Errorf("session %d turn %d: %s, %d tokens, want %d", i, k, shape(q), q.InputTokens, want)
		}
		return strings.Fields(q.Input.Messages[0].Content)
	}
	alike := func(a, b []string) (n int) {
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for i := range uint64(3) {
		// One or two more words may match randomly.
		if n := alike(words(i, 0), words(i, 2)); n < 50 || n > 52 {
			t.Errorf("turns of session %d have %d words in common, want 50", i, n)
		}
		if n := alike(words(i, 1), words(i+1, 1)); n < 10 || n > 12 {
			t.Errorf("sessions %d and %d have %d words in common, want 10", i, i+1, n)
		}
	}
	warm, err := w.Warmup(1)
	if err != nil || alike(words(0, 0), strings.Fields(warm.Turns[0].Request.Input.Messages[0].Content)) > 2 {
		t.Errorf("a warm-up begins as the run does: %v", err)
	}
}
