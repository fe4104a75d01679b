// Package target finds out what a plan leaves open about its servers: the protocol they
// speak, the model, who counts tokens, how much they take. It does not measure.
package target

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"tacho/backend"
	"tacho/internal/redact"
	"tacho/plan"
	"tacho/token"
	"tacho/workload"
)

// Env is what a target needs of the world around it.
type Env struct {
	APIKey  string // sent as a bearer token
	KeyFrom string // where it comes from, for errors
	Secrets *redact.Secrets
	Proxy   func(*http.Request) (*url.URL, error)
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil uses the network

	Tokenizers Tokenizers
	Say        func(line string)                  // told what is worth knowing; may be nil
	Ready      func(done, all int)                // prompts made ready; may be nil
	Fetch      func(file string, done, all int64) // bytes of a file downloaded; may be nil
	OnToken    backend.OnToken                    // told of tokens as they arrive; may be nil
}

// A setting is a plan in which what was left open is filled in. It does not change.
type setting struct {
	Plan plan.Plan
	Seed uint64
	env  Env
}

func (s *setting) say(format string, a ...any) {
	if s.env.Say != nil {
		s.env.Say(s.env.Secrets.Sweep(fmt.Sprintf(format, a...)))
	}
}

// A UsageError is a plan that cannot be carried out as it is written.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Open gets in touch with the servers of a plan, and finds out all that the plan leaves
// open. Nothing is generated yet.
func Open(ctx context.Context, p plan.Plan, seed uint64, env Env) (*Target, error) {
	takeVersion(&p)
	t := newTarget(&setting{p, seed, env})
	var err error
	if p.Backend, p.Port, err = t.findProtocol(ctx); err != nil {
		return nil, err
	}
	t = t.At(p)
	for _, step := range []func(context.Context) error{
		t.connect,
		t.findModel,
		t.counting.findTokenizer,
		t.open,
		t.inspect,
		t.counting.findCounter,
	} {
		if err := step(ctx); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

func newTarget(s *setting) *Target {
	t := &Target{setting: s}
	t.counting = &counting{setting: s, target: t}
	return t
}

// At is the target with another plan for the same servers.
func (t *Target) At(p plan.Plan) *Target {
	out, counts := *t, *t.counting
	out.setting = &setting{p, t.Seed, t.env}
	counts.setting, counts.target, out.counting = out.setting, &out, &counts
	return &out
}

// AsText is the target with prompts sent as text.
func (t *Target) AsText(ctx context.Context) (*Target, error) {
	p := t.Plan
	p.PromptText = true
	out := t.At(p)
	return out, out.counting.findCounter(ctx)
}

// Close lets go of the connections.
func (t *Target) Close() {
	for _, c := range t.clients {
		c.Close()
	}
	if t.Pages != nil && t.Pages.client != nil {
		t.Pages.client.CloseIdleConnections()
	}
}

// Count is how many servers there are.
func (t *Target) Count() int { return len(t.clients) }

// Counter is who counts prompt tokens.
func (t *Target) Counter() token.Counter { return t.counting.counter }

// AnswerCounter counts the tokens of an answer; nil if the servers do.
func (t *Target) AnswerCounter() func(string) int { return t.counting.answerCounter() }

// Workload makes what a level sends ready. If it is endless, data that is used up
// begins again, however many prompts there are.
func (t *Target) Workload(ctx context.Context, l plan.Level, seed uint64, endless bool) (workload.Workload, error) {
	return (&feed{setting: t.setting, target: t, counting: t.counting, endless: endless}).workload(ctx, l, seed)
}

// Workload is what the plan would send, made without a server, and who counted
// its prompts: the tokenizer that the plan names, or an estimate.
func Workload(ctx context.Context, p *plan.Plan, seed uint64, env Env) (workload.Workload, token.Counter, error) {
	if err := Check(p, env.Say); err != nil {
		return nil, nil, &UsageError{err}
	}
	kind, err := backend.Find(p.Backend)
	if err != nil {
		return nil, nil, &UsageError{err}
	}
	env.Learn(p)
	l := p.Levels()[0]
	t := newTarget(&setting{l.Plan, seed, env})
	t.Kind = kind
	if err := t.counting.countAlone(ctx); err != nil {
		return nil, nil, err
	}
	work, err := t.Workload(ctx, l, seed, false)
	return work, t.Counter(), err
}
