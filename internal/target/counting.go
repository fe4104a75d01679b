package target

import (
	"context"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// counting selects a token counter for prompts and answers.
type counting struct {
	*setting
	target    *Target
	tokenizer *token.Tokenizer    // the model's tokenizer, if available
	template  *token.ChatTemplate // the model's chat template, if available
	counter   token.Counter       // counts prompt tokens
}

// findCounter chooses the counter of prompt tokens, in this order: none if
// prompts are token ids, the model's tokenizer, the server, a built-in
// tokenizer, an estimate.
func (c *counting) findCounter(ctx context.Context) error {
	if c.counter = c.ownCounter(); c.counter != nil {
		return nil
	}
	c.counter = token.Estimate{}
	if c.Plan.SkipTokenizer {
		return nil
	}
	server := serverCounter{c.target.server, !c.target.Kind.Takes.Messages, c.target.askTimeout()}
	_, err := server.Count(ctx, "one two three")
	if err == nil {
		c.counter = server
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.countByName(err)
	return nil
}

// ownCounter returns a local counter with the same results as the server, or
// nil if the tokenizer or template is missing.
func (c *counting) ownCounter() token.Counter {
	switch {
	case c.Plan.Every(func(k workload.Kind) bool { return c.target.takesIDs(&c.Plan, k) }):
		return idCounter{}
	case c.tokenizer != nil && !c.target.Kind.Takes.Messages:
		return promptCounter{c.tokenizer}
	case c.tokenizer != nil && c.Plan.Every(func(k workload.Kind) bool { return k.Pairs }):
		return c.tokenizer // a query with a document is not a conversation
	case c.tokenizer != nil && c.template != nil:
		return chatCounter{c.tokenizer, c.template}
	}
	return nil
}

// countAlone chooses the counter if there is no server.
func (c *counting) countAlone(ctx context.Context) error {
	if c.Plan.Tokenizer != "" {
		if err := c.findTokenizer(ctx); err != nil {
			return err
		}
	}
	if c.counter = c.ownCounter(); c.counter != nil {
		return nil
	}
	c.counter = token.Estimate{}
	if c.tokenizer != nil {
		c.counter = bareCounter{c.tokenizer}
	}
	return nil
}

// countByName chooses a counter if the server does not count tokens: the
// model's tokenizer without a chat template, or a built-in tokenizer for the
// model's name. The name is the last resort, because some servers accept any
// model name.
func (c *counting) countByName(refused error) {
	if c.tokenizer == nil {
		var err error
		if c.tokenizer, err = token.Builtin(c.target.ModelID); err != nil {
			c.tokenizer = nil
			c.say("The server does not count tokens (%v) and the model's tokenizer is missing: prompt lengths are estimates. Set --tokenizer for exact lengths.", refused)
			return
		}
	}
	if c.target.Kind.Takes.Messages {
		c.counter = bareCounter{c.tokenizer}
		c.say("%s counts prompts without a chat template; the server's counts are slightly higher.", c.tokenizer.Name())
		return
	}
	c.counter = promptCounter{c.tokenizer}
	c.say("%s counts prompts, chosen by the model's name.", c.tokenizer.Name())
}

// vocabulary returns n if all ids below n are ordinary tokens, or 0 if unknown.
// Special tokens usually have the highest ids, and prompts must not contain
// them.
func (c *counting) vocabulary() int {
	const usual = 30_000 // most models have more ids, so the server's number is not needed
	switch {
	case c.Plan.RandomVocab != 0:
		return c.Plan.RandomVocab
	case c.tokenizer == nil && (c.target.vocab == 0 || c.target.vocab > usual):
		return 0
	case c.tokenizer == nil:
		return c.target.vocab - c.target.vocab/16 // the last ids may be special tokens
	}
	size := c.tokenizer.VocabSize()
	for _, s := range c.tokenizer.Specials() {
		if int(s.ID) > size/2 {
			size = min(size, int(s.ID))
		}
	}
	if c.target.vocab > 0 {
		size = min(size, c.target.vocab)
	}
	return size
}

// exactPrompts returns a generator of random prompts with a known number of
// tokens. It returns nil if the tokenizer has no such generator or if a chat
// template is added to prompts.
func (c *counting) exactPrompts(seed uint64) func(i uint64, n int) string {
	if _, plain := c.counter.(promptCounter); !plain {
		return nil
	}
	prompts, err := token.NewPrompts(c.tokenizer, seed)
	if err != nil {
		return nil // texts reach their length by counting
	}
	overhead := c.tokenizer.Overhead()
	return func(i uint64, n int) string { return prompts.Text(i, max(n-overhead, 1)) }
}

// answerCounter returns a function that counts an answer as the server does
// when the next turn quotes the answer. The function is nil if there is no
// tokenizer.
func (c *counting) answerCounter() func(string) int {
	if c.tokenizer == nil {
		return nil
	}
	return func(text string) int { return len(c.tokenizer.Encode(text, false)) }
}

// Recount counts the tokens of an output if only events were counted so far,
// because an event may contain several tokens.
func (t *Target) Recount(r *tacho.Record) error {
	c := t.counting
	if c.tokenizer == nil || !r.OK() || r.OutputFrom != tacho.FromEvents || r.Text == "" {
		return nil
	}
	n, err := c.tokenizer.Count(context.Background(), r.Text)
	if err == nil {
		r.Output, r.OutputFrom = n, tacho.FromTokenizer
	}
	return err
}

// idCounter is used for prompts of token ids, which need no counting.
type idCounter struct{ token.Estimate }

func (idCounter) Name() string { return "token ids" }
func (idCounter) Exact() bool  { return true }

// promptCounter includes the special tokens that a server adds to a plain
// prompt.
type promptCounter struct{ *token.Tokenizer }

// Count implements token.Counter.
func (c promptCounter) Count(ctx context.Context, text string) (int, error) {
	n, err := c.Tokenizer.Count(ctx, text)
	return n + c.Overhead(), err
}

// CountConversation implements token.ConversationCounter. Without roles, a
// conversation is one text.
func (c promptCounter) CountConversation(ctx context.Context, messages []token.Message) (int, error) {
	return c.Count(ctx, talk(messages, true).Text)
}

// bareCounter counts messages without the tokens added by a chat endpoint.
type bareCounter struct{ *token.Tokenizer }

// Name implements token.Counter.
func (c bareCounter) Name() string { return c.Tokenizer.Name() + " without a chat template" }

// Exact implements token.Counter.
func (bareCounter) Exact() bool { return false }

// chatCounter counts messages with the model's chat template.
type chatCounter struct {
	*token.Tokenizer
	template *token.ChatTemplate
}

// Count implements token.Counter.
func (c chatCounter) Count(ctx context.Context, text string) (int, error) {
	return c.CountConversation(ctx, []token.Message{{Role: "user", Content: text}})
}

// CountConversation implements token.ConversationCounter.
func (c chatCounter) CountConversation(ctx context.Context, messages []token.Message) (int, error) {
	full, err := c.template.Render(messages, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()})
	if err != nil {
		return 0, err
	}
	return c.Tokenizer.Count(ctx, full)
}

// Name implements token.Counter.
func (c chatCounter) Name() string { return c.Tokenizer.Name() + " under its chat template" }

// serverCounter counts tokens with the server's tokenize endpoint.
type serverCounter struct {
	backend.Server
	plain   bool // the server tokenizes text, not messages
	timeout time.Duration
}

// Count implements token.Counter.
func (c serverCounter) Count(ctx context.Context, text string) (int, error) {
	return c.count(ctx, tacho.Input{Text: text})
}

// CountConversation implements token.ConversationCounter.
func (c serverCounter) CountConversation(ctx context.Context, messages []token.Message) (int, error) {
	return c.count(ctx, talk(messages, c.plain))
}

func (c serverCounter) count(ctx context.Context, in tacho.Input) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.CountTokens(ctx, &in)
}

// talk converts a conversation to an input. If plain is set, the input is one
// text, for protocols without roles.
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
