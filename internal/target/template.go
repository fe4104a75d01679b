package target

import (
	"context"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// templates reports whether tacho applies the chat template to plain prompts of
// a dataset, because the server does not. hub is the dataset's name on the hub,
// if it has one.
func (f *feed) templates(p *plan.Plan, kind workload.Kind, hub string) bool {
	return f.counting.template != nil && !f.target.Kind.Takes.Messages && f.target.Kind.Takes.Text && !p.SkipChatTemplate &&
		kind.Chat && !workload.SentPlain(hub)
}

// templateCounter counts prompts after the chat template is applied.
type templateCounter struct {
	promptCounter
	template *token.ChatTemplate
}

// Count implements token.Counter.
func (c templateCounter) Count(ctx context.Context, text string) (int, error) {
	return c.CountConversation(ctx, []token.Message{{Role: "user", Content: text}})
}

// CountConversation implements token.ConversationCounter.
func (c templateCounter) CountConversation(_ context.Context, messages []token.Message) (int, error) {
	_, n, err := c.render(messages)
	return n, err
}

// render applies the chat template to a conversation and counts its tokens for
// a completions endpoint.
func (c templateCounter) render(messages []token.Message) (string, int, error) {
	text, err := c.template.Render(messages, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()})
	if err != nil {
		return "", 0, err
	}
	text = c.withoutStart(text)
	n := len(c.Encode(text, true))
	return text, n, c.Err()
}

// withoutStart removes the start token, because the server adds its own.
func (c templateCounter) withoutStart(text string) string {
	if c.Overhead() == 0 {
		return text
	}
	for _, s := range c.Specials() {
		if rest, ok := strings.CutPrefix(text, s.Text); ok && s.Text != "" {
			return rest
		}
	}
	return text
}

// underTemplate is a workload with the chat template applied to its prompts.
type underTemplate struct {
	workload.Workload
	counter templateCounter
}

// Session implements tacho.Source.
func (u underTemplate) Session(i uint64) (tacho.Session, error) {
	s, err := u.Workload.Session(i)
	return s, u.apply(&s, err)
}

// Warmup implements workload.Workload.
func (u underTemplate) Warmup(i uint64) (tacho.Session, error) {
	s, err := u.Workload.Warmup(i)
	return s, u.apply(&s, err)
}

func (u underTemplate) apply(s *tacho.Session, err error) error {
	if err != nil {
		return err
	}
	for t := range s.Turns {
		q := &s.Turns[t].Request
		messages := []token.Message{{Role: "user", Content: q.Input.Text}}
		if q.Input.Text == "" {
			messages = plainTalk(s, t)
		}
		if messages == nil {
			continue
		}
		text, n, err := u.counter.render(messages)
		if err != nil {
			return err
		}
		q.Input, q.InputTokens = tacho.Input{Text: text}, n
	}
	return nil
}

// plainTalk returns the conversation of a turn sent as one text, or nil if the
// turn quotes answers, which are still unknown.
func plainTalk(s *tacho.Session, turn int) (out []token.Message) {
	in := &s.Turns[turn].Request.Input
	if len(s.Turns) > 1 || !in.Plain {
		return nil
	}
	for _, m := range in.Messages {
		if m.Answer > 0 || m.Raw != nil {
			return nil
		}
		out = append(out, token.Message{Role: m.Role, Content: m.Content})
	}
	return out
}
