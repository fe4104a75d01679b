package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/hub"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// Tokenizers locates tokenizers, and datasets of the hub.
type Tokenizers struct {
	Home     string // directory of Hugging Face's tools; its hub subdirectory contains downloads
	Cache    string // replaces Home/hub if set
	Tables   string // directory for precomputed tables, for fast loading
	Online   bool   // allows downloads
	Endpoint string // URL of the hub; empty means huggingface.co
	Token    string // access token for private repositories
}

func (t *Tokenizers) hub() hub.Hub {
	return hub.Hub{Endpoint: t.Endpoint, Token: t.Token, Home: t.Home, Cache: t.Cache, Offline: !t.Online}
}

// Places returns the places of cached models, but not of datasets: a plan may name a private one.
func (t *Tokenizers) Places() (out []atomicfile.Place) {
	for _, cache := range t.hub().Caches() {
		out = append(out, atomicfile.Place{Path: cache, Prefix: hub.ModelPrefix})
	}
	return out
}

// hubTimeout is the timeout of a tokenizer download.
const hubTimeout = 60 * time.Second

// findTokenizer loads the model's tokenizer if available. An error is returned
// only if the user named the tokenizer, because the server may count tokens
// instead.
func (c *counting) findTokenizer(ctx context.Context) error {
	p := &c.Plan
	if p.SkipTokenizer || p.Sim != "" && p.Tokenizer == "" {
		return nil // the simulated engine has its own tokenizer
	}
	from := c.env.Tokenizers
	if info, err := atomicfile.Stat(p.Tokenizer); p.Tokenizer != "" && err == nil {
		if c.tokenizer, err = token.Open(p.Tokenizer, from.Tables); err != nil {
			return &UsageError{fmt.Errorf("--tokenizer: %w", err)}
		}
		dir := p.Tokenizer
		if !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		c.findTemplate(dir)
		return nil
	}
	name := p.Tokenizer
	if name == "" {
		name = c.target.ModelID
	}
	err := c.loadNamed(ctx, name)
	if err != nil && p.Tokenizer != "" {
		var unknown error
		if c.tokenizer, unknown = token.Builtin(p.Tokenizer); unknown != nil {
			return &UsageError{fmt.Errorf("--tokenizer %s: no such file or directory; %w; %w", p.Tokenizer, unknown, err)}
		}
	}
	return ctx.Err()
}

// loadNamed loads the tokenizer of a model, owner/name or owner/name@revision,
// from the local cache or the hub.
func (c *counting) loadNamed(ctx context.Context, name string) error {
	from := c.env.Tokenizers
	if cmp.Or(from.Cache, from.Home) == "" || !strings.Contains(name, "/") {
		return errors.New("want a model as owner/name")
	}
	name, revision, _ := strings.Cut(name, "@")
	repo := hub.Repo{Name: name, Revision: revision}
	err := c.openModel(repo, func(h hub.Hub) (string, error) { return h.Snapshot(repo) })
	if err == nil || !from.Online {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	if hubErr := c.openModel(repo, func(h hub.Hub) (string, error) { return downloadTokenizer(ctx, h, repo) }); hubErr != nil {
		return errors.Join(err, hubErr)
	}
	return nil
}

// openModel loads the tokenizer and the chat template of a model from a
// directory.
func (c *counting) openModel(repo hub.Repo, find func(hub.Hub) (string, error)) error {
	dir, err := find(c.env.Tokenizers.hub())
	if err != nil {
		return err
	}
	t, err := token.Open(dir, c.env.Tokenizers.Tables)
	if err != nil {
		return err
	}
	c.tokenizer = t.Of(repo.Name)
	c.findTemplate(dir)
	return nil
}

// downloadTokenizer downloads the tokenizer files of a model and returns their
// directory.
func downloadTokenizer(ctx context.Context, h hub.Hub, repo hub.Repo) (dir string, err error) {
	list, err := h.List(ctx, repo)
	if err != nil {
		return "", fmt.Errorf("download a tokenizer: %w", err)
	}
	has := func(name string) bool { return slices.Contains(list.Files, name) }
	best := slices.IndexFunc(token.Files, has)
	if best < 0 {
		return "", fmt.Errorf("download a tokenizer: %s contains none of %s", repo.Name, strings.Join(token.Files, ", "))
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

// findTemplate loads the chat template next to the tokenizer, if prompts are
// counted or sent with the template.
func (c *counting) findTemplate(dir string) {
	if !c.target.Kind.Takes.Messages && (c.Plan.SkipChatTemplate || !c.Plan.Some(func(k workload.Kind) bool { return k.Chat })) {
		return
	}
	var err error
	if c.template, err = token.LoadChatTemplate(dir); err == nil {
		return
	}
	if c.target.Kind.Takes.Messages {
		c.say("The chat template cannot be used (%v); the server counts prompts if possible.", err)
	} else {
		c.say("The chat template cannot be used (%v); prompts are sent without it.", err)
	}
}
