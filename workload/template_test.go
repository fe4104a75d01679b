package workload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
)

// templateCounter counts like a chat template: tokens around each message by role, a
// default system prompt, the header of the answer, and one token per word.
type templateCounter struct {
	token.Estimate
	strict bool // rejects two consecutive messages of one role
}

func (c templateCounter) Count(ctx context.Context, text string) (int, error) {
	return c.CountConversation(ctx, []token.Message{{Role: "user", Content: text}})
}

func (c templateCounter) CountConversation(_ context.Context, messages []token.Message) (int, error) {
	n := 1 + 2
	if messages[0].Role != "system" {
		n += 12
	}
	for i, m := range messages {
		if c.strict && i > 0 && m.Role == messages[i-1].Role {
			return 0, errors.New("roles must alternate")
		}
		n += map[string]int{"system": 4, "user": 3, "assistant": 5}[m.Role] + len(strings.Fields(m.Content))
	}
	return n, nil
}

func TestTurnsAddTheTokensAskedFor(t *testing.T) {
	for name, o := range map[string]ConversationOptions{
		"plain":                    {Turns: Fixed(4)},
		"under a system prompt":    {Turns: Fixed(4), System: 30, Systems: 2},
		"with sub-agents":          {Turns: Fixed(3), SubAgents: 3},
		"with a longer first turn": {Turns: Fixed(3), First: Fixed(90)},
	} {
		c := templateCounter{}
		w := must.Get(newConversation(t.Context(), Options{Conversation: o, Counter: c, Messages: true, Count: 3, Input: Fixed(40), Output: Fixed(7), Seed: 5}))(t)
		for i := range uint64(3) {
			s := must.Get(w.Session(i))(t)
			answers := make([]tacho.Answer, len(s.Turns))
			for k := range answers {
				answers[k] = tacho.Answer{Text: strings.Repeat("x ", 7), Tokens: 7}
			}
			for k, turn := range s.Turns {
				q := turn.Request
				q.Quote(answers)
				var sent []token.Message
				for _, m := range q.Input.Messages {
					sent = append(sent, token.Message{Role: m.Role, Content: m.Content})
				}
				if n, err := c.CountConversation(t.Context(), sent); n != q.InputTokens || err != nil {
					t.Errorf("%s, session %d, turn %d: says %d tokens, has %d (%v)", name, i, k, q.InputTokens, n, err)
				}
			}
			first := 40
			if n, _ := o.First.Constant(); n > 0 {
				first = n
			}
			if got, want := s.Turns[0].Request.InputTokens, o.System+first; got != want {
				t.Errorf("%s: the first turn has %d tokens, want %d", name, got, want)
			}
		}
	}
}

func TestFramesOfTemplatesThatRefuse(t *testing.T) {
	got, err := measureTemplate(t.Context(), templateCounter{strict: true})
	if want := (templateTokens{alone: 18, system: -8, further: 8}); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := measureTemplate(t.Context(), token.Estimate{}); got != (templateTokens{}) || err != nil {
		t.Errorf("%+v, %v of a counter of texts", got, err)
	}
}

func TestConversationsOfFilesAreCountedAsSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.jsonl")
	lines := `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"one two"},{"role":"assistant","content":"a b c"},{"role":"user","content":"three"}],"output_tokens":3}
{"messages":[{"role":"user","content":"one two three four"}],"output_tokens":3}
`
	must.Do(t, os.WriteFile(path, []byte(lines), 0o600))
	w := must.Get(newCustom(t.Context(), Options{Path: path, Counter: templateCounter{}, Messages: true, Output: Fixed(-1)}))(t)
	for i, want := range []int{3 + (4 + 2) + (3 + 2) + (5 + 3) + (3 + 1), 3 + 12 + (3 + 4)} {
		s, err := w.Session(uint64(i))
		if err != nil || s.Turns[0].Request.InputTokens != want {
			t.Errorf("line %d has %d tokens, %v, want %d", i+1, s.Turns[0].Request.InputTokens, err, want)
		}
	}
}

// TestAnswersAreCountedBare checks that answers in the data are counted without the
// template.
func TestAnswersAreCountedBare(t *testing.T) {
	o := Options{Counter: templateCounter{}, Messages: true, Output: Fixed(-1)}
	must.Do(t, o.findTemplate(t.Context()))
	if n, err := o.countAnswer(t.Context(), "an answer of five words"); n != 5 || err != nil {
		t.Errorf("%d tokens, %v, want 5", n, err)
	}
}
