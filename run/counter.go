package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/hub"
	"tacho/token"
	"tacho/workload"
)

// Tokenizers says where tokenizers may be had, and datasets of the hub.
type Tokenizers struct {
	Home     string // of Hugging Face's tools: its hub directory keeps what is downloaded
	Cache    string // the same, if it is another directory
	Tables   string // directory for tables made from tokenizers, so that they load fast again
	Online   bool   // the hub may be asked
	Endpoint string // of the hub; empty is Hugging Face's own
	Token    string // for what is not for everybody
}

// local is where tokenizers are without a network.
func (t *Tokenizers) local() string { return cmp.Or(t.Cache, t.Home) }

// hub is how the hub is asked.
func (t *Tokenizers) hub() hub.Hub {
	return hub.Hub{Endpoint: t.Endpoint, Token: t.Token, Home: t.Home, Cache: t.Cache, Offline: !t.Online}
}

// hubTimeout bounds the download of a tokenizer.
const hubTimeout = 60 * time.Second

// findTokenizer loads the model's tokenizer if it can be had. Only one that
// the user named must be: without, the server may count.
func (r *Runner) findTokenizer(ctx context.Context) error {
	p := &r.Plan
	if p.SkipTokenizer || p.Sim != "" && p.Tokenizer == "" {
		return nil // the simulated engine has a tokenizer of its own
	}
	from := r.env.Tokenizers
	if info, err := os.Stat(p.Tokenizer); p.Tokenizer != "" && err == nil {
		if r.tokenizer, err = token.Open(p.Tokenizer, from.Tables); err != nil {
			return &UsageError{fmt.Errorf("--tokenizer: %w", err)}
		}
		dir := p.Tokenizer
		if !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		r.findTemplate(dir)
		return nil
	}
	name := p.Tokenizer
	if name == "" {
		name = r.ModelID
	}
	err := r.loadNamed(ctx, name)
	if err != nil && p.Tokenizer != "" {
		var unknown error
		if r.tokenizer, unknown = token.Builtin(p.Tokenizer); unknown != nil {
			return &UsageError{fmt.Errorf("--tokenizer %s: neither a file or folder here, nor built in, nor a model that can be had: %w", p.Tokenizer, errors.Join(unknown, err))}
		}
	}
	return ctx.Err()
}

// loadNamed takes the tokenizer of a model, owner/name or owner/name@revision,
// from the local cache, or else from the hub.
func (r *Runner) loadNamed(ctx context.Context, name string) error {
	from := r.env.Tokenizers
	if from.local() == "" || !strings.Contains(name, "/") {
		return fmt.Errorf("%q is no owner/name: %w", name, fs.ErrNotExist)
	}
	name, revision, _ := strings.Cut(name, "@")
	repo := hub.Repo{Name: name, Revision: revision}
	err := r.openModel(repo, func(h hub.Hub) (string, error) { return h.Snapshot(repo) })
	if err == nil || !from.Online {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	if hubErr := r.openModel(repo, func(h hub.Hub) (string, error) { return downloadTokenizer(ctx, h, repo) }); hubErr != nil {
		return errors.Join(err, hubErr)
	}
	return nil
}

// openModel takes the tokenizer and the template of a model from a directory.
func (r *Runner) openModel(repo hub.Repo, find func(hub.Hub) (string, error)) error {
	dir, err := find(r.env.Tokenizers.hub())
	if err != nil {
		return err
	}
	t, err := token.Open(dir, r.env.Tokenizers.Tables)
	if err != nil {
		return err
	}
	r.tokenizer = t.Of(repo.Name)
	r.findTemplate(dir)
	return nil
}

// downloadTokenizer fetches the files of a model that tokenizing takes, and
// returns the directory they are in.
func downloadTokenizer(ctx context.Context, h hub.Hub, repo hub.Repo) (dir string, err error) {
	list, err := h.List(ctx, repo)
	if err != nil {
		return "", fmt.Errorf("download a tokenizer: %w", err)
	}
	has := func(name string) bool { return slices.Contains(list.Files, name) }
	best := slices.IndexFunc(token.Files, has)
	if best < 0 {
		return "", fmt.Errorf("download a tokenizer: %s has none of %s", repo.Name, strings.Join(token.Files, ", "))
	}
	for _, name := range append([]string{token.Files[best]}, token.TemplateFiles...) {
		if !has(name) {
			continue
		}
		file, err := h.Fetch(ctx, repo, list.Commit, name, nil)
		if err != nil {
			return "", fmt.Errorf("download a tokenizer: %w", err)
		}
		dir = filepath.Dir(file)
	}
	return dir, nil
}

// findTemplate loads the chat template beside the tokenizer, where prompts
// are to be counted or sent under it.
func (r *Runner) findTemplate(dir string) {
	if !r.kind.Takes.Messages && !templates(&r.Plan) {
		return
	}
	var err error
	if r.template, err = token.LoadChatTemplate(dir); err == nil {
		return
	}
	if r.kind.Takes.Messages {
		r.say("The chat template cannot be used (%v): prompts are counted by the server, where it can.", err)
	} else {
		r.say("The chat template cannot be used (%v): prompts are sent without it.", err)
	}
}

// findCounter settles who counts prompt tokens: nobody, where prompts are
// token ids; the model's tokenizer; the server; a built-in tokenizer; or an
// estimate.
func (r *Runner) findCounter(ctx context.Context) error {
	if r.Counter = r.ownCounter(); r.Counter != nil {
		return nil
	}
	r.Counter = token.Estimate{}
	if r.Plan.SkipTokenizer {
		return nil
	}
	c := serverCounter{r.server, !r.kind.Takes.Messages, askTimeout(&r.Plan)}
	_, err := c.Count(ctx, "one two three")
	if err == nil {
		r.Counter = c
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.countByName(err)
	return nil
}

// ownCounter counts as the server does, without it; nil where that takes more
// than is at hand.
func (r *Runner) ownCounter() token.Counter {
	switch {
	case r.sendsIDs():
		return idCounter{}
	case r.tokenizer != nil && !r.kind.Takes.Messages:
		return promptCounter{r.tokenizer}
	case r.tokenizer != nil && r.Plan.Every(func(k workload.Kind) bool { return k.Name == "random_rerank" }):
		return r.tokenizer // a query and a document are no conversation
	case r.tokenizer != nil && r.template != nil:
		return chatCounter{r.tokenizer, r.template}
	}
	return nil
}

// countAlone settles who counts where there is no server.
func (r *Runner) countAlone(ctx context.Context) error {
	if r.Plan.Tokenizer != "" {
		if err := r.findTokenizer(ctx); err != nil {
			return err
		}
	}
	if r.Counter = r.ownCounter(); r.Counter != nil {
		return nil
	}
	r.Counter = token.Estimate{}
	if r.tokenizer != nil {
		r.Counter = bareCounter{r.tokenizer}
	}
	return nil
}

// countByName is for servers that do not count: a tokenizer without a chat
// template, or the built-in one of the OpenAI model that the server says it is.
// A name is no proof (some servers answer to any), so whoever can count is
// asked before.
func (r *Runner) countByName(refused error) {
	if r.tokenizer == nil {
		var err error
		if r.tokenizer, err = token.Builtin(r.ModelID); err != nil {
			r.tokenizer = nil
			r.say("No tokenizer of the model is at hand (--tokenizer) and the server does not count tokens (%v): prompt lengths are estimates.", refused)
			return
		}
	}
	if r.kind.Takes.Messages {
		r.Counter = bareCounter{r.tokenizer}
		r.say("Prompts are counted by %s without a chat template, so the server's own counts are a little higher.", r.tokenizer.Name())
		return
	}
	r.Counter = promptCounter{r.tokenizer}
	r.say("Prompts are counted by %s, going by the model's name.", r.tokenizer.Name())
}

// vocabulary is below which ids are ordinary tokens; 0 is not known. Special
// tokens mostly come last, and a prompt must not have any.
func (r *Runner) vocabulary() int {
	const usual = 30_000 // less than most have, so that the server's number says something of small ones only
	switch {
	case r.Plan.RandomVocab != 0:
		return r.Plan.RandomVocab
	case r.tokenizer == nil && (r.vocab == 0 || r.vocab > usual):
		return 0
	case r.tokenizer == nil:
		return r.vocab - r.vocab/16 // where the special ones are, nobody says
	}
	size := r.tokenizer.VocabSize()
	for _, s := range r.tokenizer.Specials() {
		if int(s.ID) > size/2 {
			size = min(size, int(s.ID))
		}
	}
	if r.vocab > 0 {
		size = min(size, r.vocab)
	}
	return size
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

// answerCounter counts answers as the server will when it is told them again;
// nil where no tokenizer is at hand.
func (r *Runner) answerCounter() func(string) int {
	if r.tokenizer == nil {
		return nil
	}
	return func(text string) int { return len(r.tokenizer.Encode(text, false)) }
}

// outputCounter is a Sink that counts what the server did not: where only the
// events tell how many tokens there were, the tokenizer knows better.
type outputCounter struct {
	tacho.Sink
	tokenizer *token.Tokenizer
}

// counting has output counted by the tokenizer, if there is one.
func (r *Runner) counting(sink tacho.Sink) tacho.Sink {
	if r.tokenizer == nil {
		return sink
	}
	return outputCounter{sink, r.tokenizer}
}

// Add implements tacho.Sink.
func (c outputCounter) Add(r *tacho.Record) error {
	if r.OK() && r.OutputFrom == tacho.FromEvents && r.Text != "" {
		n, err := c.tokenizer.Count(context.Background(), r.Text)
		if err != nil {
			return err
		}
		r.Output, r.OutputFrom = n, tacho.FromTokenizer
	}
	return c.Sink.Add(r)
}
