package target

import (
	"context"
	"strings"
	"time"

	"tacho"
	"tacho/plan"
	"tacho/token"
	"tacho/workload"
)

// templates says whether the plain prompts of a dataset go under the chat
// template here, because the server does not put them there. hub is its name on
// the hub, if it is from there.
func (f *feed) templates(p *plan.Plan, kind workload.Kind, hub string) bool {
	return f.counting.template != nil && !f.target.Kind.Takes.Messages && f.target.Kind.Takes.Text && !p.SkipChatTemplate &&
		kind.Chat && !workload.SentPlain(hub)
}

// templateCounter counts what is sent when a prompt has been under the chat
// template.
type templateCounter struct {
	promptCounter
	template *token.ChatTemplate
}

// Count implements token.Counter.
func (c templateCounter) Count(ctx context.Context, text string) (int, error) {
	return c.CountTalk(ctx, []token.Message{{Role: "user", Content: text}})
}

// CountTalk implements token.TalkCounter.
func (c templateCounter) CountTalk(_ context.Context, messages []token.Message) (int, error) {
	_, n, err := c.render(messages)
	return n, err
}

// render is a conversation under the chat template, and the tokens it has for
// a completions endpoint.
func (c templateCounter) render(messages []token.Message) (string, int, error) {
	text, err := c.template.Render(messages, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()})
	if err != nil {
		return "", 0, err
	}
	text = c.withoutStart(text)
	return text, len(c.Encode(text, true)), nil
}

// withoutStart takes away the token that opens a text: the server puts one
// there itself, and two would be one too many.
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

// underTemplate is a workload whose prompts go under a chat template.
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

// plainTalk is the conversation of a turn that would be sent as one text; nil
// where it is to quote answers, which nobody knows yet.
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
