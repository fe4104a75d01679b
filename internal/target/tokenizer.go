package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tacho/hub"
	"tacho/token"
	"tacho/workload"
)

// Tokenizers says where to find tokenizers, and datasets of the hub.
type Tokenizers struct {
	Home     string // of Hugging Face's tools: its hub directory keeps what is downloaded
	Cache    string // the same, if it is another directory
	Tables   string // directory for tables made from tokenizers, so that they load fast again
	Online   bool   // the hub may be asked
	Endpoint string // of the hub; empty is Hugging Face's own
	Token    string // for what is not public
}

// local is where tokenizers are without a network.
func (t *Tokenizers) local() string { return cmp.Or(t.Cache, t.Home) }

// hub is how the hub is asked.
func (t *Tokenizers) hub() hub.Hub {
	return hub.Hub{Endpoint: t.Endpoint, Token: t.Token, Home: t.Home, Cache: t.Cache, Offline: !t.Online}
}

// hubTimeout bounds the download of a tokenizer.
const hubTimeout = 60 * time.Second

// findTokenizer loads the model's tokenizer, if there is one to be had. It fails
// only if the user named it: without a tokenizer the server may count.
func (c *counting) findTokenizer(ctx context.Context) error {
	p := &c.Plan
	if p.SkipTokenizer || p.Sim != "" && p.Tokenizer == "" {
		return nil // the simulated engine has a tokenizer of its own
	}
	from := c.env.Tokenizers
	if info, err := os.Stat(p.Tokenizer); p.Tokenizer != "" && err == nil {
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
			return &UsageError{fmt.Errorf("--tokenizer %s: no file or folder has this name; %w; %w", p.Tokenizer, unknown, err)}
		}
	}
	return ctx.Err()
}

// loadNamed takes the tokenizer of a model, owner/name or owner/name@revision,
// from the local cache, or else from the hub.
func (c *counting) loadNamed(ctx context.Context, name string) error {
	from := c.env.Tokenizers
	if from.local() == "" || !strings.Contains(name, "/") {
		return errors.New("a model is written owner/name")
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

// openModel takes the tokenizer and the template of a model from a directory.
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

// downloadTokenizer fetches the files of a model that are needed to count, and
// returns their directory.
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
func (c *counting) findTemplate(dir string) {
	if !c.target.Kind.Takes.Messages && (c.Plan.SkipChatTemplate || !c.Plan.Some(func(k workload.Kind) bool { return k.Chat })) {
		return
	}
	var err error
	if c.template, err = token.LoadChatTemplate(dir); err == nil {
		return
	}
	if c.target.Kind.Takes.Messages {
		c.say("The chat template cannot be used (%v): prompts are counted by the server, where it can.", err)
	} else {
		c.say("The chat template cannot be used (%v): prompts are sent without it.", err)
	}
}
