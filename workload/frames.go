package workload

import (
	"context"

	"tacho/token"
)

// frames are the tokens that a server puts around the messages of a
// conversation. A message counted alone has other tokens around it than one
// among several; frames are the difference.
type frames struct {
	alone   int // around the only message
	system  int // that a system message before it adds
	further int // that an answer and another message behind it add
	extra   int // that another message, with no answer before it, adds
}

// framesOf finds them by counting conversations of the shortest messages. Where
// the counter cannot count a conversation of some form, its part is 0.
func framesOf(ctx context.Context, c token.Counter) (f frames, err error) {
	talk, ok := c.(token.TalkCounter)
	if !ok {
		return f, nil
	}
	const word = "a"
	count := func(roles ...string) int {
		messages := make([]token.Message, len(roles))
		for i, role := range roles {
			messages[i] = token.Message{Role: role, Content: word}
		}
		n, talkErr := talk.CountTalk(ctx, messages)
		if talkErr != nil && err == nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		if talkErr != nil {
			return 0 // some templates refuse a role, or two messages of one in a row
		}
		return n
	}
	one := count("user")
	two, err2 := talk.CountTalk(ctx, []token.Message{{Role: "user", Content: word + " " + word}})
	if one == 0 || err2 != nil {
		return f, err
	}
	tokens := two - one // of the word
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

// aroundText is how many tokens the counter adds to those of a text: what a chat
// template puts around it, or the token that opens it.
func aroundText(ctx context.Context, c token.Counter) (int, error) {
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

// findFrame finds how many tokens are around a text that is counted as a chat.
// For a completions endpoint there are none to take off: the reference counts the
// token that opens a text.
func (o *Options) findFrame(ctx context.Context) error {
	if !o.Messages && !o.Framed {
		return nil
	}
	f, err := framesOf(ctx, o.Counter)
	o.frame = f.alone
	return err
}

// countAnswer is how many tokens an answer has.
func (o *Options) countAnswer(ctx context.Context, text string) (int, error) {
	n, err := o.Counter.Count(ctx, text)
	return max(n-o.frame, 1), err
}

// countPrompt is how many tokens the prompt of an entry has, answers of the
// server not counted.
func (o *Options) countPrompt(ctx context.Context, e *entry) (int, error) {
	talk, ok := o.Counter.(token.TalkCounter)
	if !ok || len(e.Messages) == 0 {
		return o.Counter.Count(ctx, e.text())
	}
	messages := make([]token.Message, len(e.Messages))
	for i, m := range e.Messages {
		messages[i] = token.Message{Role: m.Role, Content: m.Content}
	}
	n, err := talk.CountTalk(ctx, messages)
	if err != nil && ctx.Err() == nil { // a template that refuses such a conversation
		return o.Counter.Count(ctx, e.text())
	}
	return n, err
}
