package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tacho"

	"tacho/backend"
	"tacho/plan"
	"tacho/workload"
)

// mostAsk bounds how long a question to the server may take: what it serves, or
// how many tokens a text has.
const mostAsk = 30 * time.Second

// askTimeout is how long a question may take: no longer than a request.
func (t *Target) askTimeout() time.Duration {
	if limit := t.Plan.RequestTimeout.Duration(); limit > 0 {
		return min(mostAsk, limit)
	}
	return mostAsk
}

// findModel settles the model's name: the plan's, or the first the server lists.
func (t *Target) findModel(ctx context.Context) error {
	p := &t.Plan
	t.Model = cmp.Or(p.ServedModelName, p.Model)
	t.ModelID = cmp.Or(p.Model, t.Model)
	if t.Model != "" {
		return nil
	}
	o := t.questions()
	o.Client = t.clients[0]
	first, err := t.Kind.New(o)
	if err != nil {
		return &UsageError{err}
	}
	models, err := t.models(ctx, first.(backend.Server))
	switch {
	case errors.Is(err, backend.ErrNoEndpoint), err == nil && len(models) == 0:
		return &UsageError{t.noModel(err)}
	case err != nil:
		return t.Unreachable(ctx, err)
	}
	t.Model = models[0].ID
	t.ModelID = t.env.Secrets.Hide(cmp.Or(models[0].Root, t.Model))
	t.takeLimit(models)
	return nil
}

// noModel is the error of a server that lists no model. err may say why.
func (t *Target) noModel(err error) error {
	var missing *backend.MissingError
	if !errors.As(err, &missing) {
		return errors.New("the server does not say which model it serves: name it with --model")
	}
	base, err := url.Parse(t.Plan.BaseURLs()[0])
	if err == nil && strings.Trim(base.Path, "/") != "" {
		return fmt.Errorf("the server answers %d at %s: check the path of --base-url (if it is right, name the model with --model)", missing.Status, missing.Path)
	}
	return fmt.Errorf("the server does not say which model it serves (%d at %s): name it with --model", missing.Status, missing.Path)
}

// models asks what the server serves, again and again while the ready check
// lasts.
func (t *Target) models(ctx context.Context, server backend.Server) ([]backend.Model, error) {
	deadline := time.Now().Add(t.Plan.ReadyCheck.Duration())
	for {
		once, cancel := context.WithTimeout(ctx, t.askTimeout())
		models, err := server.Models(once)
		cancel()
		if err == nil || errors.Is(err, backend.ErrNoEndpoint) || !Pause(ctx, deadline) {
			return models, err
		}
	}
}

// limitTimeout is how long a run waits for an answer that it can do without.
const limitTimeout = 3 * time.Second

// findLimit asks how many tokens the model takes. A server that does not tell is
// taken to have no limit.
func (t *Target) findLimit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, min(limitTimeout, t.askTimeout()))
	defer cancel()
	if models, err := t.server.Models(ctx); err == nil {
		t.takeLimit(models)
	}
}

func (t *Target) takeLimit(models []backend.Model) {
	for _, m := range models {
		if m.ID == t.Model {
			t.limit, t.vocab = m.MaxLen, m.Vocab
		}
	}
}

// mostChecked bounds the prompts that are looked at before a level: the others
// are like them.
const (
	mostChecked = 1000
	mostBlind   = 3 // prompts of unknown length
)

// Fits complains about prompts that the model cannot take, before any is sent.
func (t *Target) Fits(l plan.Level, work workload.Workload) error {
	if t.limit == 0 {
		return nil
	}
	n := mostChecked
	if l.Prompts > 0 {
		n = min(n, l.Prompts)
	}
	blind := 0 // prompts of unknown length, as with pictures in them, which take long to make
	for i := range n {
		s, err := work.Session(uint64(i))
		if err != nil {
			return nil //nolint:nilerr // the data has come to its end, or the run will say what is wrong with it
		}
		for k := range s.Turns {
			q := &s.Turns[k].Request
			if err := t.fit(i, q); err != nil {
				return err
			}
			if q.InputTokens == 0 {
				blind++
			}
		}
		if blind > mostBlind {
			return nil
		}
	}
	return nil
}

// fit complains about a prompt that the model cannot take. Audio is left out:
// the server itself lowers how much is asked for.
func (t *Target) fit(i int, q *tacho.Request) error {
	asked := q.MaxTokens
	if t.Kind.Pools {
		asked = 0
	}
	if q.Model != "" || q.Input.Audio != nil || q.InputTokens+asked <= t.limit {
		return nil
	}
	return &UsageError{fmt.Errorf(
		"prompt %d has %d tokens and asks for %d, but the model takes %d in all: ask for shorter ones, or start the server with a longer context",
		i, q.InputTokens, asked, t.limit)}
}

// Models are the names of the models that the servers list; none, if they do not
// tell.
func (t *Target) Models(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	models, _ := t.server.Models(ctx) // what cannot be asked is not known
	for _, m := range models {
		names = append(names, m.ID)
	}
	return names
}
