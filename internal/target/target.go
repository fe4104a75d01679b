package target

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/transport"
	"github.com/tacho-bench/tacho/transport/socket"
	"github.com/tacho-bench/tacho/workload"
)

// A Target is a set of servers under test.
type Target struct {
	*setting
	Model   string    // name in requests
	ModelID string    // name for people
	Servers []Server  // as reported by the servers
	GPUs    plan.GPUs // as far as known

	Simulated bool // a server is an engine of tacho sim

	Kind     backend.Kind        // the protocol
	clock    tacho.Clock         // source of arrival timestamps
	header   http.Header         // of every request
	clients  []*transport.Client // one per server
	Each     []tacho.Backend     // one per server
	Backend  tacho.Backend       // all servers, for requests
	server   backend.Server      // all servers, for questions
	limit    int                 // context length in tokens; 0 if unknown
	vocab    int                 // vocabulary size reported by the server; 0 if unknown
	Pages    *Pages
	counting *counting
}

// takeVersion removes /v1 from the end of the base URLs. Clients of OpenAI's
// protocol include /v1 there; here it is part of the path. The URLs get their scheme.
func takeVersion(p *plan.Plan) {
	const version = "/v1"
	if len(p.BaseURL) > 0 {
		p.BaseURL = p.BaseURLs()
	}
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

// findProtocol chooses protocol and port.
func (t *Target) findProtocol(ctx context.Context) (name string, port int, err error) {
	p := &t.Plan
	port = p.Port
	if t.header, err = parseHeader(p.Header); err != nil {
		return "", 0, &UsageError{err}
	}
	if err := t.chooseClock(ctx); err != nil {
		return "", 0, &UsageError{err}
	}
	name = p.Backend
	if strings.EqualFold(name, backend.Auto) {
		if t.Kind, port, err = t.detect(ctx); err != nil {
			return "", 0, err
		}
		name = t.Kind.Name
	} else if t.Kind, err = backend.Find(name); err != nil {
		return "", 0, &UsageError{err}
	}
	return name, cmp.Or(port, t.Kind.Port), nil
}

// connect creates a client for each server.
func (t *Target) connect(context.Context) error {
	for _, base := range t.Plan.BaseURLs() {
		c, err := t.dial(base)
		if err != nil {
			return &UsageError{err}
		}
		t.clients = append(t.clients, c)
	}
	return nil
}

// detect finds the protocol of the server and the port that answered. If no
// server is named, detect tries the usual ports of the host.
func (t *Target) detect(ctx context.Context) (backend.Kind, int, error) {
	p := t.Plan
	ports := []int{p.Port}
	if len(p.BaseURL) == 0 && p.Port == 0 {
		ports = usualPorts()
	}
	deadline := time.Now().Add(p.ReadyCheck.Duration())
	for {
		var failed error
		for _, port := range ports {
			p.Port = port
			kind, err := t.detectAt(ctx, p.BaseURLs()[0])
			if err == nil {
				return kind, port, nil
			}
			if f := (*tacho.Failure)(nil); len(ports) == 1 || !errors.As(err, &f) || f.Cause != tacho.Refused {
				failed = errors.Join(failed, err)
			}
		}
		if failed == nil {
			failed = fmt.Errorf("no server is listening on the usual ports %v of %s, set --base-url", ports, p.Host)
		}
		if Pause(ctx, deadline) {
			continue
		}
		err := fmt.Errorf("--backend auto: %s", t.env.Secrets.Hide(failed.Error()))
		if answered := (*AnsweredError)(nil); errors.As(failed, &answered) {
			err = &AnsweredError{err}
		}
		return backend.Kind{}, 0, err
	}
}

// detectAt finds the protocol of the server at an address.
func (t *Target) detectAt(ctx context.Context, base string) (backend.Kind, error) {
	shown := redact.URL(base)
	client, err := t.dial(base)
	if err != nil {
		return backend.Kind{}, fmt.Errorf("%s: %w", shown, err)
	}
	defer client.Close()
	asking, cancel := context.WithTimeout(ctx, t.askTimeout())
	defer cancel()
	kind, evidence, err := backend.Detect(asking, backend.Options{Client: client, Header: t.header, APIKey: t.env.APIKey, Secrets: t.env.Secrets})
	f := (*tacho.Failure)(nil)
	switch {
	case err == nil:
		t.say("Detected %s at %s: %s.", kind.Name, shown, evidence)
		return kind, nil
	case !errors.As(err, &f):
		return kind, &AnsweredError{fmt.Errorf("%s: %w", shown, err)}
	case f.Status != 0:
		return kind, t.trouble(ctx, shown, f, f.Message, "has an unknown protocol: %s")
	}
	return kind, fmt.Errorf("%s: %w", shown, err)
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

func parseHeader(list []string) (http.Header, error) {
	h := http.Header{}
	for _, e := range list {
		key, value, ok := strings.Cut(e, "=")
		if !ok || key == "" || strings.ContainsAny(key, ": \t\"") {
			return nil, errors.New("--header: want KEY=VALUE")
		}
		h.Set(key, value)
	}
	return h, nil
}

// dial creates a client for a server. The client connects with its first
// request.
func (t *Target) dial(base string) (*transport.Client, error) {
	tlsConfig, err := t.tls()
	if err != nil {
		return nil, err
	}
	return transport.New(transport.Options{
		BaseURL: base, Clock: t.clock, TLS: tlsConfig, Proxy: t.env.Proxy, HTTP2: t.Plan.HTTP2, DialTimeout: t.askTimeout(), Dial: t.env.Dial,
	})
}

// chooseClock chooses the source of arrival timestamps. With --clock auto, the
// wire clock must pass a check first.
func (t *Target) chooseClock(ctx context.Context) error {
	if t.Plan.Clock != plan.AutoClock {
		clock, err := tacho.ParseClock(t.Plan.Clock)
		if err != nil {
			return fmt.Errorf("--clock: %w", err)
		}
		t.clock = clock
	}
	if t.env.Dial != nil {
		t.clock = tacho.ReadClock
	}
	if t.Plan.Clock != plan.AutoClock || t.env.Dial != nil {
		return nil
	}
	t.clock = tacho.WireClock
	if err := socket.CheckWire(ctx); err != nil {
		t.clock = tacho.KernelClock
		t.say("Using kernel timestamps: %v.", err)
	}
	return nil
}

func (t *Target) tls() (*tls.Config, error) {
	p := &t.Plan
	return transport.TLSConfig(transport.TLSOptions{
		Insecure: p.Insecure, CAFile: p.CACert, CertFile: p.ClientCert, KeyFile: p.ClientKey,
	})
}

// questions returns backend options for metadata requests.
func (t *Target) questions() backend.Options {
	return backend.Options{
		Endpoint: t.Plan.Endpoint, Model: t.Model, APIKey: t.env.APIKey, Header: t.header, Extra: t.Plan.ExtraBody, Secrets: t.env.Secrets,
	}
}

// open prepares the servers for requests. If there is a tokenizer, it counts
// generated tokens, so the text is kept.
func (t *Target) open(context.Context) error {
	p, o := &t.Plan, t.questions()
	o.Sampling, o.Logprobs, o.Extras, o.OnToken = p.Sampling, p.Logprobs, p.Extras, t.env.OnToken
	o.KeepText = t.counting.tokenizer != nil || p.SaveDetailed || p.JudgesAnswers() || p.Some(func(k workload.Kind) bool { return k.Quotes || k.Chat })
	if p.ChatTemplateKwargs != nil {
		o.Extra = map[string]any{"chat_template_kwargs": p.ChatTemplateKwargs}
		maps.Copy(o.Extra, p.ExtraBody)
	}
	for _, o.Client = range t.clients {
		b, err := t.Kind.New(o)
		if err != nil {
			return &UsageError{err}
		}
		t.Each = append(t.Each, b)
	}
	t.Backend = t.Each[0]
	if len(t.Each) > 1 {
		how, err := route.Find(p.Balance)
		if err != nil {
			return &UsageError{fmt.Errorf("--balance: %w", err)}
		}
		if t.Backend, err = backend.Spread(slices.Clone(t.Each), p.ShownURLs(), how, t.Seed); err != nil {
			return err
		}
	}
	t.server = t.Backend.(backend.Server)
	if p.Retries > 0 {
		t.Backend = backend.Retry(t.Backend, p.Retries)
		for i, b := range t.Each {
			t.Each[i] = backend.Retry(b, p.Retries)
		}
	}
	return nil
}

// inspect asks for optional facts: context length, metrics pages and versions.
func (t *Target) inspect(ctx context.Context) error {
	if t.limit == 0 {
		t.findLimit(ctx)
	}
	t.findPages(ctx)
	t.describe(ctx)
	return ctx.Err()
}

// Warm dials n connections, divided among the servers, and keeps at least least
// spare connections.
func (t *Target) Warm(ctx context.Context, n, least int) error {
	share := func(n int) int { return (n + len(t.clients) - 1) / len(t.clients) }
	for _, c := range t.clients {
		if err := c.Warm(ctx, share(n), share(least)); err != nil {
			return err
		}
	}
	return nil
}

// Flush clears the prefix caches of the servers if the plan asks for it.
func (t *Target) Flush(ctx context.Context) error {
	if !t.Plan.FlushCache {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.askTimeout())
	defer cancel()
	if err := t.server.FlushCache(ctx); err != nil {
		return fmt.Errorf("--flush-cache: %w", err)
	}
	return nil
}

// Cannot returns reasons for requests the protocol does not support.
func (t *Target) Cannot() []metric.Reason {
	if t.Kind.ExactLength || t.Kind.Pools {
		return nil
	}
	return []metric.Reason{{
		Code: "output-length", Severity: metric.Note,
		Text: t.Kind.Name + " does not support an exact output length, so the model may stop earlier: compare TTFT and TPOT, not E2EL",
	}}
}

// Unkept returns a reason for each server that closes connections.
func (t *Target) Unkept() []metric.Reason {
	var reasons []metric.Reason
	for i, c := range t.clients {
		if !c.Keeps() {
			reasons = append(reasons, metric.Reason{
				Code: "connections", Severity: metric.Note,
				Text: "the server at " + t.Plan.ShownURLs()[i] + " closes connections despite keep-alive, so each later request opened a new connection: raise the server's keep-alive timeout",
			})
		}
	}
	return reasons
}

// Wire returns the packet counts of all clients at the network device.
func (t *Target) Wire() (seen []socket.Stats) {
	for _, c := range t.clients {
		seen = append(seen, c.Wire())
	}
	return seen
}

// Network returns reasons for packet loss and reordering since then.
func (t *Target) Network(then []socket.Stats) []metric.Reason {
	var reasons []metric.Reason
	for i, now := range t.Wire() {
		reasons = append(reasons, networkReasons(t.Plan.ShownURLs()[i], now.Since(then[i]))...)
	}
	return reasons
}

func networkReasons(server string, s socket.Stats) []metric.Reason {
	if s.Repeated+s.Reordered == 0 {
		return nil
	}
	return []metric.Reason{{
		Code: "network", Severity: metric.Note,
		Text: fmt.Sprintf("of %d segments to and from %s, %d were retransmitted and %d arrived out of order: check the network path",
			s.Segments, server, s.Repeated, s.Reordered),
	}}
}

// Profile starts the server's profiler and returns a function that stops it.
func (t *Target) Profile(ctx context.Context) (func(), error) {
	switch {
	case !t.Plan.Profile:
		return func() {}, nil
	case t.Plan.ProfileAt > 0:
		return t.profileWhenFull(ctx), nil
	}
	return t.startProfile(ctx)
}

// profileWhenFull starts the profiler for a while when the number of running
// requests reaches the plan's threshold. It returns a function that stops the
// profiler.
func (t *Target) profileWhenFull(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() {
		for full := false; !full; {
			select {
			case <-ctx.Done():
				t.say("The server was not profiled: its metrics page never showed %d running requests.", t.Plan.ProfileAt)
				return
			case <-time.After(profileLook):
				said := t.Pages.Now()
				full = said != nil && said.Running != nil && *said.Running >= float64(t.Plan.ProfileAt)
			}
		}
		stop, err := t.startProfile(ctx)
		if err != nil {
			t.say("The server was not profiled: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.Plan.ProfileFor.Duration()):
		}
		stop()
	})
	return func() {
		cancel()
		over.Wait()
	}
}

// profileLook is the interval between checks of the running requests; the page
// is read every --metrics-interval.
const profileLook = 50 * time.Millisecond

func (t *Target) startProfile(ctx context.Context) (func(), error) {
	p := t.server.(backend.Profiler)
	if err := t.askProfiler(ctx, p, true); err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	t.say("Profiler started.")
	return func() {
		// The profile is wanted even if the run was stopped.
		if err := t.askProfiler(context.WithoutCancel(ctx), p, false); err != nil {
			t.say("The profiler did not stop: %v", err)
		}
	}, nil
}

func (t *Target) askProfiler(ctx context.Context, p backend.Profiler, start bool) error {
	ctx, cancel := context.WithTimeout(ctx, t.askTimeout())
	defer cancel()
	return p.Profile(ctx, start)
}
