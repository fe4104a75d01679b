package run

import (
	"context"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/token"
)

// idCounter stands where nothing needs counting: prompts are token ids.
type idCounter struct{ token.Estimate }

func (idCounter) Name() string { return "token ids" }
func (idCounter) Exact() bool  { return true }

// promptCounter counts with the special tokens that a server puts around a
// plain prompt.
type promptCounter struct{ *token.Tokenizer }

// Count implements token.Counter.
func (c promptCounter) Count(ctx context.Context, text string) (int, error) {
	n, err := c.Tokenizer.Count(ctx, text)
	return n + c.Overhead(), err
}

// CountTalk implements token.TalkCounter: without roles, a conversation is one
// text.
func (c promptCounter) CountTalk(ctx context.Context, messages []token.Message) (int, error) {
	return c.Count(ctx, talk(messages, true).Text)
}

// bareCounter counts messages without what a chat endpoint puts around them.
type bareCounter struct{ *token.Tokenizer }

// Name implements token.Counter.
func (c bareCounter) Name() string { return c.Tokenizer.Name() + " without a chat template" }

// Exact implements token.Counter.
func (bareCounter) Exact() bool { return false }

// chatCounter counts what a chat endpoint makes of one message.
type chatCounter struct {
	*token.Tokenizer
	template *token.ChatTemplate
}

// Count implements token.Counter.
func (c chatCounter) Count(ctx context.Context, text string) (int, error) {
	return c.CountTalk(ctx, []token.Message{{Role: "user", Content: text}})
}

// CountTalk implements token.TalkCounter.
func (c chatCounter) CountTalk(ctx context.Context, messages []token.Message) (int, error) {
	full, err := c.template.Render(messages, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()})
	if err != nil {
		return 0, err
	}
	return c.Tokenizer.Count(ctx, full)
}

// Name implements token.Counter.
func (c chatCounter) Name() string { return c.Tokenizer.Name() + " under its chat template" }

// serverCounter has the server count.
type serverCounter struct {
	backend.Server
	plain   bool // it is asked for texts, not messages
	timeout time.Duration
}

// Count implements token.Counter.
func (c serverCounter) Count(ctx context.Context, text string) (int, error) {
	return c.count(ctx, tacho.Input{Text: text})
}

// CountTalk implements token.TalkCounter.
func (c serverCounter) CountTalk(ctx context.Context, messages []token.Message) (int, error) {
	return c.count(ctx, talk(messages, c.plain))
}

func (c serverCounter) count(ctx context.Context, in tacho.Input) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.CountTokens(ctx, &in)
}

// talk is a conversation as an input; plain makes one text of it, for protocols
// without roles.
func talk(messages []token.Message, plain bool) tacho.Input {
	q := tacho.Request{Input: tacho.Input{Plain: plain}}
	for _, m := range messages {
		q.Input.Messages = append(q.Input.Messages, tacho.Message{Role: m.Role, Content: m.Content})
	}
	q.Quote(nil)
	return q.Input
}

func (serverCounter) Name() string { return "server /tokenize" }
func (serverCounter) Exact() bool  { return true }
