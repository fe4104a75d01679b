// Package target connects to the servers of a plan and fills in everything the
// plan leaves open: protocol, model, token counter and context length. It does
// not measure.
package target

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// Env contains the environment of a target.
type Env struct {
	APIKey  string // sent as a bearer token
	KeyFrom string // source of the key, for errors
	Secrets *redact.Secrets
	Proxy   func(*http.Request) (*url.URL, error)
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil uses the network

	Tokenizers Tokenizers
	Observer   live.Observer   // receives messages and progress; may be nil
	OnToken    backend.OnToken // called for each token on arrival; may be nil
}

// A setting is a complete plan with its environment. It is immutable.
type setting struct {
	Plan plan.Plan
	Seed uint64
	env  Env
}

func (s *setting) say(format string, a ...any) {
	s.env.Observer.Message(s.env.Secrets.Sweep(fmt.Sprintf(format, a...)))
}

// A UsageError reports a plan that cannot be executed as written.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Open connects to the servers of a plan and fills in everything the plan
// leaves open. No tokens are generated yet.
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
	if s.env.Observer == nil {
		s.env.Observer = live.NopObserver{}
	}
	t := &Target{setting: s}
	t.counting = &counting{setting: s, target: t}
	return t
}

// At returns the target with another plan for the same servers.
func (t *Target) At(p plan.Plan) *Target {
	out, counts := *t, *t.counting
	out.setting = &setting{p, t.Seed, t.env}
	counts.setting, counts.target, out.counting = out.setting, &out, &counts
	return &out
}

// AsText returns the target with prompts sent as text instead of token ids.
func (t *Target) AsText(ctx context.Context) (*Target, error) {
	p := t.Plan
	p.PromptText = true
	out := t.At(p)
	return out, out.counting.findCounter(ctx)
}

// Close closes the connections.
func (t *Target) Close() {
	for _, c := range t.clients {
		c.Close()
	}
	if t.Pages != nil && t.Pages.client != nil {
		t.Pages.client.CloseIdleConnections()
	}
}

// Count returns the number of servers.
func (t *Target) Count() int { return len(t.clients) }

// Counter returns the counter of prompt tokens.
func (t *Target) Counter() token.Counter { return t.counting.counter }

// AnswerCounter returns a function that counts the tokens of an answer, or nil
// if the servers count them.
func (t *Target) AnswerCounter() func(string) int { return t.counting.answerCounter() }

// Workload prepares the requests of a level. If endless is set, the workload
// starts again at the end of its data.
func (t *Target) Workload(ctx context.Context, l plan.Level, seed uint64, endless bool) (workload.Workload, error) {
	return (&feed{setting: t.setting, target: t, counting: t.counting, endless: endless}).workload(ctx, l, seed)
}

// Workload prepares the requests of a plan without a server. It also returns
// the counter of prompt tokens: the plan's tokenizer, or an estimate.
func Workload(ctx context.Context, p *plan.Plan, seed uint64, env Env) (workload.Workload, token.Counter, error) {
	if env.Observer == nil {
		env.Observer = live.NopObserver{}
	}
	if err := Check(p, env.Observer.Message); err != nil {
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
