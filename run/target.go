package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/internal/redact"
	"tacho/metric"
	"tacho/plan"
	"tacho/transport"
	"tacho/workload"
)

// takeVersion takes a /v1 from the end of the servers' addresses, where the
// clients of OpenAI's protocol have it: here it begins the paths.
func takeVersion(p *plan.Plan) {
	const version = "/v1"
	p.BaseURL = slices.Clone(p.BaseURL)
	for i, base := range p.BaseURL {
		short, had := strings.CutSuffix(strings.TrimRight(base, "/"), version)
		if !had {
			continue
		}
		p.BaseURL[i] = short
		if p.Endpoint != "" && !strings.HasPrefix(p.Endpoint, version+"/") {
			p.Endpoint = version + "/" + strings.TrimLeft(p.Endpoint, "/")
		}
	}
}

// meet settles which protocol to speak, and connects to the servers.
func (r *Runner) meet(ctx context.Context) (err error) {
	p := &r.Plan
	if strings.EqualFold(p.Backend, backend.Auto) {
		if r.kind, err = r.detect(ctx); err != nil {
			return err
		}
		p.Backend = r.kind.Name
	} else if r.kind, err = backend.Find(p.Backend); err != nil {
		return &UsageError{err}
	}
	if p.Port == 0 {
		p.Port = r.kind.Port
	}
	for _, base := range p.BaseURLs() {
		c, err := r.connect(base)
		if err != nil {
			return &UsageError{err}
		}
		r.clients = append(r.clients, c)
	}
	return nil
}

// detect asks the server what it is. Where no server is named, those on the
// usual ports of the host are asked.
func (r *Runner) detect(ctx context.Context) (backend.Kind, error) {
	p := &r.Plan
	ports := []int{p.Port}
	if len(p.BaseURL) == 0 && p.Port == 0 {
		ports = usualPorts()
	}
	header, err := r.header()
	if err != nil {
		return backend.Kind{}, &UsageError{err}
	}
	deadline := time.Now().Add(p.ReadyCheck.Duration())
	for {
		var failed error
		for _, port := range ports {
			p.Port = port
			kind, err := r.detectAt(ctx, p.BaseURLs()[0], header)
			if err == nil {
				return kind, nil
			}
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.ShownURLs()[0], err))
		}
		if !r.pause(ctx, deadline) {
			return backend.Kind{}, fmt.Errorf("--backend auto: %s", r.env.Secrets.Hide(failed.Error()))
		}
	}
}

func (r *Runner) detectAt(ctx context.Context, base string, header http.Header) (backend.Kind, error) {
	client, err := r.connect(base)
	if err != nil {
		return backend.Kind{}, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout(&r.Plan))
	defer cancel()
	kind, evidence, err := backend.Detect(ctx, backend.Options{Client: client, Header: header, APIKey: r.env.APIKey, Secrets: r.env.Secrets})
	if err == nil {
		r.say("The server at %s is taken for %s: %s.", redact.URL(base), kind.Name, evidence)
	}
	return kind, err
}

func usualPorts() []int {
	var ports []int
	for _, k := range backend.Kinds {
		if !slices.Contains(ports, k.Port) && k.Port != 443 {
			ports = append(ports, k.Port)
		}
	}
	return ports
}

func (r *Runner) connect(base string) (*transport.Client, error) {
	p := &r.Plan
	var clock tacho.Clock
	if err := clock.UnmarshalText([]byte(p.Clock)); err != nil {
		return nil, fmt.Errorf("--clock: %w: write kernel or read", err)
	}
	tlsConfig, err := transport.TLSConfig(transport.TLSOptions{
		Insecure: p.Insecure, CAFile: p.CACert, CertFile: p.ClientCert, KeyFile: p.ClientKey,
	})
	if err != nil {
		return nil, err
	}
	return transport.New(transport.Options{BaseURL: base, Clock: clock, TLS: tlsConfig, Proxy: r.env.Proxy, HTTP2: p.HTTP2, DialTimeout: askTimeout(p)})
}

// newBackend is the servers as requests see them, and as questions do.
func (r *Runner) newBackend(full bool) (tacho.Backend, backend.Server, error) {
	p := &r.Plan
	header, err := r.header()
	if err != nil {
		return nil, nil, err
	}
	o := backend.Options{Endpoint: p.Endpoint, Model: r.Model, APIKey: r.env.APIKey, Header: header, Extra: p.ExtraBody, Secrets: r.env.Secrets}
	if full {
		o.Sampling, o.Logprobs, o.Extras, o.KeepText = p.Sampling, p.Logprobs, p.Extras, p.SaveDetailed || p.Quotes() || r.tokenizer != nil
		if p.ChatTemplateKwargs != nil {
			o.Extra = map[string]any{"chat_template_kwargs": p.ChatTemplateKwargs}
			maps.Copy(o.Extra, p.ExtraBody)
		}
		o.OnToken = func(n int) { r.live.Tokens.Add(int64(n)) }
	}
	var all []tacho.Backend
	for _, o.Client = range r.clients {
		b, err := r.kind.New(o)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, b)
	}
	r.each = slices.Clone(all)
	b := all[0]
	if len(all) > 1 {
		if b, err = backend.Spread(all, p.ShownURLs(), backend.Balance(p.Balance), r.Seed); err != nil {
			return nil, nil, fmt.Errorf("--balance: %w", err)
		}
	}
	server := b.(backend.Server)
	if p.Retries > 0 {
		b = backend.Retry(b, p.Retries)
		for i := range r.each {
			r.each[i] = backend.Retry(r.each[i], p.Retries)
		}
	}
	return b, server, nil
}

// warm dials n connections, shared out among the servers, and keeps at least
// so many spare ones.
func (r *Runner) warm(ctx context.Context, n, least int) error {
	share := func(n int) int { return (n + len(r.clients) - 1) / len(r.clients) }
	for _, c := range r.clients {
		if err := c.Warm(ctx, share(n), share(least)); err != nil {
			return err
		}
	}
	return nil
}

// flush has the servers forget the prompts they know, where the plan says so.
func (r *Runner) flush(ctx context.Context) error {
	if !r.Plan.FlushCache {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout(&r.Plan))
	defer cancel()
	if err := r.server.FlushCache(ctx); err != nil {
		return fmt.Errorf("--flush-cache: %w", err)
	}
	return nil
}

// cannot is what the server has no way to do, and a reader of the report
// should know.
func (r *Runner) cannot() []metric.Reason {
	if r.kind.ExactLength || r.kind.Pools {
		return nil
	}
	return []metric.Reason{{
		Code: "output-length", Level: metric.Note,
		Text: r.kind.Name + " servers cannot be asked for an exact output length: the one asked for is an upper bound, and outputs are as long as the model likes; compare runs by TTFT and TPOT, not by E2EL",
	}}
}

// unkept is what a reader should know of the connections to the servers.
func (r *Runner) unkept() []metric.Reason {
	var reasons []metric.Reason
	for i, c := range r.clients {
		if !c.Keeps() {
			reasons = append(reasons, metric.Reason{
				Code: "connections", Level: metric.Note,
				Text: "the server at " + r.Plan.ShownURLs()[i] + " closes connections behind an answer although it says that it keeps them: since that showed, each request has a connection of its own; raise its keep-alive time to measure without connecting",
			})
		}
	}
	return reasons
}

// limitTimeout is how long a run waits for an answer that it can do without.
const limitTimeout = 3 * time.Second

// findLimit asks how much the model takes, if nobody has said. A server that
// does not tell has no limit that we could keep.
func (r *Runner) findLimit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	models, err := r.askOnce(ctx, r.server.Models)
	if err != nil {
		return
	}
	r.takeLimit(models)
}

func (r *Runner) takeLimit(models []backend.Model) {
	for _, m := range models {
		if m.ID == r.Model {
			r.limit, r.vocab = m.MaxLen, m.Vocab
		}
	}
}

// mostChecked bounds the prompts that are looked at before a level: those of a
// workload are of a kind.
const (
	mostChecked = 1000
	mostBlind   = 3 // prompts of unknown length
)

// fits complains about prompts that the model cannot take, before any is sent.
func (r *Runner) fits(l plan.Level, work workload.Workload) error {
	if r.limit == 0 || !r.Counter.Exact() {
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
		for t := range s.Turns {
			q := &s.Turns[t].Request
			if err := r.fit(i, q); err != nil {
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

// fit complains about a prompt that the model cannot take. To a sound to be
// written down what is asked for is a limit alone, which the server lowers to
// what it has.
func (r *Runner) fit(i int, q *tacho.Request) error {
	asked := q.MaxTokens
	if r.kind.Pools {
		asked = 0
	}
	if q.Model != "" || q.Input.Audio != nil || q.InputTokens+asked <= r.limit {
		return nil
	}
	return &UsageError{fmt.Errorf(
		"prompt %d has %d tokens and asks for %d, but the model takes %d in all: ask for shorter ones, or start the server with a longer context",
		i, q.InputTokens, asked, r.limit)}
}
