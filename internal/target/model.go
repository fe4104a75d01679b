package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// mostAsk is the longest timeout of a question to the server, such as its
// models or the token count of a text.
const mostAsk = 30 * time.Second

// askTimeout is the timeout of a question: at most the timeout of a request.
func (t *Target) askTimeout() time.Duration {
	if limit := t.Plan.RequestTimeout.Duration(); limit > 0 {
		return min(mostAsk, limit)
	}
	return mostAsk
}

// findModel sets the model's name: from the plan, or the first model the server
// lists.
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

// noModel returns the error for a server without a model list. err may contain
// the cause.
func (t *Target) noModel(err error) error {
	var missing *backend.MissingError
	if !errors.As(err, &missing) {
		return errors.New("the server does not list its models, set --model")
	}
	base, err := url.Parse(t.Plan.BaseURLs()[0])
	if err == nil && strings.Trim(base.Path, "/") != "" {
		return fmt.Errorf("the server answers %d at %s, check the path of --base-url; if the path is right, set --model", missing.Status, missing.Path)
	}
	return fmt.Errorf("the server does not list its models (%d at %s), set --model", missing.Status, missing.Path)
}

// models asks for the server's models, repeatedly until the ready check times
// out.
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

// limitTimeout is the timeout of an optional question.
const limitTimeout = 3 * time.Second

// findLimit asks for the model's context length. If the server does not report
// one, no limit is assumed.
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

// mostChecked is the number of prompts checked before a level; the rest are
// similar.
const (
	mostChecked = 1000
	mostBlind   = 3 // prompts of unknown length
)

// Fits returns an error if a prompt is too long for the model, before anything
// is sent.
func (t *Target) Fits(l plan.Level, work workload.Workload) error {
	if t.limit == 0 {
		return nil
	}
	n := mostChecked
	if l.Prompts > 0 {
		n = min(n, l.Prompts)
	}
	blind := 0 // prompts of unknown length, for example with images, which are slow to create
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

// fit returns an error if a prompt is too long for the model. Audio is skipped,
// because the server lowers the output length itself.
func (t *Target) fit(i int, q *tacho.Request) error {
	maxTokens := q.MaxTokens
	if t.Kind.Pools {
		maxTokens = 0
	}
	if q.Model != "" || q.Input.Audio != nil || q.InputTokens+maxTokens <= t.limit {
		return nil
	}
	return &UsageError{fmt.Errorf(
		"prompt %d has %d tokens and requests %d more, but the model's context is %d tokens: use shorter prompts or outputs, or start the server with a longer context",
		i, q.InputTokens, maxTokens, t.limit)}
}

// Models returns the names of the models the servers list, or nothing if the
// servers do not answer.
func (t *Target) Models(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	models, _ := t.server.Models(ctx) // optional
	for _, m := range models {
		names = append(names, m.ID)
	}
	return names
}
