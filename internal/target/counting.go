package target

import (
	"context"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/token"
	"tacho/workload"
)

// counting is who counts the tokens of prompts and answers, and how.
type counting struct {
	*setting
	target    *Target
	tokenizer *token.Tokenizer    // the model's own, if it is at hand
	template  *token.ChatTemplate // likewise
	counter   token.Counter       // of prompts
}

// findCounter settles who counts prompt tokens: nobody, where prompts are
// token ids; the model's tokenizer; the server; a built-in tokenizer; or an
// estimate.
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

// ownCounter counts as the server would, without asking it; nil where what that
// takes is not at hand.
func (c *counting) ownCounter() token.Counter {
	switch {
	case c.Plan.Every(func(k workload.Kind) bool { return c.target.takesIDs(&c.Plan, k) }):
		return idCounter{}
	case c.tokenizer != nil && !c.target.Kind.Takes.Messages:
		return promptCounter{c.tokenizer}
	case c.tokenizer != nil && c.Plan.Every(func(k workload.Kind) bool { return k.Pairs }):
		return c.tokenizer // a query and a document are no conversation
	case c.tokenizer != nil && c.template != nil:
		return chatCounter{c.tokenizer, c.template}
	}
	return nil
}

// countAlone settles who counts where there is no server.
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

// countByName is for servers that do not count. The model's tokenizer counts
// without a chat template, or a built-in one that goes by the model's name. This
// comes last: a name is no proof, for some servers answer to any.
func (c *counting) countByName(refused error) {
	if c.tokenizer == nil {
		var err error
		if c.tokenizer, err = token.Builtin(c.target.ModelID); err != nil {
			c.tokenizer = nil
			c.say("No tokenizer of the model is at hand (--tokenizer) and the server does not count tokens (%v): prompt lengths are estimates.", refused)
			return
		}
	}
	if c.target.Kind.Takes.Messages {
		c.counter = bareCounter{c.tokenizer}
		c.say("Prompts are counted by %s without a chat template, so the server's own counts are a little higher.", c.tokenizer.Name())
		return
	}
	c.counter = promptCounter{c.tokenizer}
	c.say("Prompts are counted by %s, going by the model's name.", c.tokenizer.Name())
}

// vocabulary is the number below which all ids are ordinary tokens; 0 is
// unknown. Special tokens mostly come last, and a prompt must have none.
func (c *counting) vocabulary() int {
	const usual = 30_000 // most models have more, and then the server's number is not needed
	switch {
	case c.Plan.RandomVocab != 0:
		return c.Plan.RandomVocab
	case c.tokenizer == nil && (c.target.vocab == 0 || c.target.vocab > usual):
		return 0
	case c.tokenizer == nil:
		return c.target.vocab - c.target.vocab/16 // nobody says which are special: the last ones may be
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

// exactPrompts makes random prompts whose length is known without counting; nil
// where the tokenizer cannot, or where a chat template goes around them.
func (c *counting) exactPrompts(seed uint64) func(i uint64, n int) string {
	if _, plain := c.counter.(promptCounter); !plain {
		return nil
	}
	prompts, err := token.NewPrompts(c.tokenizer, seed)
	if err != nil {
		return nil // texts are fitted by counting
	}
	around := c.tokenizer.Overhead()
	return func(i uint64, n int) string { return prompts.Text(i, max(n-around, 1)) }
}

// answerCounter counts an answer as the server does when the next turn quotes
// it; nil where no tokenizer is at hand.
func (c *counting) answerCounter() func(string) int {
	if c.tokenizer == nil {
		return nil
	}
	return func(text string) int { return len(c.tokenizer.Encode(text, false)) }
}

// Recount counts the tokens of an output where only its events were counted: an
// event may have several.
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
