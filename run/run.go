// Package run carries out a plan: it finds the server, makes the workload
// ready, and runs the levels one after the other.
package run

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"tacho"
	"tacho/backend"
	"tacho/engine"
	"tacho/internal/redact"
	"tacho/outcome"
	"tacho/plan"
	"tacho/token"
	"tacho/transport"
)

// Env is what a run needs of the world around it.
type Env struct {
	APIKey  string // sent as a bearer token
	KeyFrom string // where it comes from, for errors
	// Secrets learn those of the plan, and are kept out of all that the run keeps
	// or says. Nil is none that anybody else knows.
	Secrets *redact.Secrets
	Proxy   func(*http.Request) (*url.URL, error)
	Random  uint64 // what to seed with when the plan does not say

	Tokenizers Tokenizers
}

// Hooks are told how a run goes. All may be nil.
type Hooks struct {
	Say   func(line string)                        // something worth knowing
	Ready func(done, all int)                      // prompts made ready
	Fetch func(file string, done, all int64)       // bytes of a file downloaded; all is -1 while nobody knows
	Open  func() error                             // a level is about to begin, and all is well so far
	Begin func(*outcome.Level, *engine.Live) error // it has begun
}

// A Runner carries out one plan against one server.
type Runner struct {
	Plan    plan.Plan
	Seed    uint64
	Model   string // as requests name it
	ModelID string // as people know it
	Counter token.Counter
	Servers []Server  // what the servers say of themselves
	GPUs    plan.GPUs // what they run on, as far as anybody tells

	env        Env
	tokenizer  *token.Tokenizer    // the model's own, if it is at hand
	template   *token.ChatTemplate // likewise
	kind       backend.Kind
	clients    []*transport.Client // one for each server
	server     backend.Server
	backend    tacho.Backend
	each       []tacho.Backend // the servers, one by one
	idsRefused string          // the server's words for it, where it takes no token ids
	tries      uint64          // requests sent before the measured ones, to see whether the servers answer
	limit      int             // tokens of prompt and output together; 0 unknown
	vocab      int             // tokens of the model's vocabulary, by the server; 0 unknown
	pages      *pages
	live       *engine.Live // of the level that runs
	hooks      Hooks
}

// Open gets in touch with the server: what it serves, and whether it counts
// tokens. Nothing is generated yet.
func Open(ctx context.Context, p plan.Plan, env Env, hooks Hooks) (*Runner, error) {
	if err := Check(&p, hooks.Say); err != nil {
		return nil, &UsageError{err}
	}
	env.learn(&p)
	takeVersion(&p)
	r := &Runner{Plan: p, Seed: env.Random, env: env, live: &engine.Live{}, hooks: hooks}
	if p.Seed != nil {
		r.Seed = *p.Seed
	}
	r.drawPrefix()
	var err error
	if err := r.meet(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.findModel(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.findTokenizer(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if r.backend, r.server, err = r.newBackend(true); err != nil {
		r.Close()
		return nil, &UsageError{err}
	}
	if r.limit == 0 {
		r.findLimit(ctx)
	}
	r.findPages(ctx)
	r.describe(ctx)
	if err := r.findCounter(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// A UsageError is a plan that cannot be carried out as it is written.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Close lets go of the connections.
func (r *Runner) Close() {
	for _, c := range r.clients {
		c.Close()
	}
}

func (r *Runner) header() (http.Header, error) {
	h := http.Header{}
	for _, e := range r.Plan.Header {
		key, value, ok := strings.Cut(e, "=")
		if !ok || key == "" || strings.ContainsAny(key, ": \t\"") {
			return nil, errors.New("--header: write KEY=VALUE")
		}
		h.Set(key, value)
	}
	return h, nil
}
