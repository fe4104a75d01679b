package workload

import (
	"context"

	"github.com/tacho-bench/tacho/token"
)

// templateTokens are the numbers of tokens a server's chat template adds to messages.
// They depend on the position of the message in the conversation.
type templateTokens struct {
	alone   int // around a single message
	system  int // added by a system message before it
	further int // added by an answer and another message after it
	extra   int // added by another message without an answer before it
}

// measureTemplate counts conversations of the shortest messages. If the counter rejects a
// form of conversation, its field is 0.
func measureTemplate(ctx context.Context, c token.Counter) (f templateTokens, err error) {
	counter, ok := c.(token.ConversationCounter)
	if !ok {
		return f, nil
	}
	const word = "a"
	count := func(roles ...string) int {
		messages := make([]token.Message, len(roles))
		for i, role := range roles {
			messages[i] = token.Message{Role: role, Content: word}
		}
		n, countErr := counter.CountConversation(ctx, messages)
		if countErr != nil && err == nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		if countErr != nil {
			return 0 // some templates reject a role, or two consecutive messages of one role
		}
		return n
	}
	one := count("user")
	two, err2 := counter.CountConversation(ctx, []token.Message{{Role: "user", Content: word + " " + word}})
	if one == 0 || err2 != nil {
		return f, err
	}
	tokens := two - one // tokens of the word
	f.alone = one - tokens
	adds := func(words, n int) int {
		if n == 0 {
			return 0
		}
		return n - one - words*tokens
	}
	f.system = adds(1, count("system", "user"))
	f.further = adds(2, count("user", "assistant", "user"))
	f.extra = adds(1, count("user", "user"))
	return f, err
}

// textOverhead returns the number of tokens the counter adds to a text: a chat template,
// or a start token.
func textOverhead(ctx context.Context, c token.Counter) (int, error) {
	if !c.Exact() {
		return 0, nil
	}
	one, err := c.Count(ctx, filler[1:])
	if err != nil {
		return 0, err
	}
	two, err := c.Count(ctx, filler[1:]+filler)
	return max(2*one-two, 0), err
}

// findTemplate measures the tokens around a text that is counted as a chat message. For a
// completions endpoint it measures nothing, because the reference counts the start token,
// too.
func (o *Options) findTemplate(ctx context.Context) error {
	if !o.Messages && !o.Templated {
		return nil
	}
	f, err := measureTemplate(ctx, o.Counter)
	o.templateTokens = f.alone
	return err
}

// countAnswer returns the number of tokens of an answer.
func (o *Options) countAnswer(ctx context.Context, text string) (int, error) {
	n, err := o.Counter.Count(ctx, text)
	return max(n-o.templateTokens, 1), err
}

// countPrompt returns the number of tokens of an entry's prompt, without answers of the
// server.
func (o *Options) countPrompt(ctx context.Context, e *entry) (int, error) {
	counter, ok := o.Counter.(token.ConversationCounter)
	if !ok || len(e.Messages) == 0 {
		return o.Counter.Count(ctx, e.text())
	}
	messages := make([]token.Message, len(e.Messages))
	for i, m := range e.Messages {
		messages[i] = token.Message{Role: m.Role, Content: m.Content}
	}
	n, err := counter.CountConversation(ctx, messages)
	if err != nil && ctx.Err() == nil { // the template rejects this conversation
		return o.Counter.Count(ctx, e.text())
	}
	return n, err
}
