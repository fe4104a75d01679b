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

	"tacho"
	"tacho/backend"
	"tacho/internal/redact"
	"tacho/metric"
	"tacho/plan"
	"tacho/route"
	"tacho/transport"
	"tacho/transport/tap"
	"tacho/workload"
)

// A Target is the servers that are measured.
type Target struct {
	*setting
	Model   string    // as requests name it
	ModelID string    // as people know it
	Servers []Server  // what the servers say of themselves
	GPUs    plan.GPUs // what they run on, as far as anybody tells

	Kind     backend.Kind        // the protocol
	clock    tacho.Clock         // what is to stamp arrivals
	header   http.Header         // of every request
	clients  []*transport.Client // one for each server
	Each     []tacho.Backend     // likewise
	Backend  tacho.Backend       // all of them, for requests
	server   backend.Server      // all of them, for questions
	limit    int                 // tokens of prompt and output together; 0 unknown
	vocab    int                 // tokens of the model's vocabulary, by the server; 0 unknown
	Pages    *Pages
	counting *counting
}

// takeVersion cuts /v1 from the end of the servers' addresses. Clients of
// OpenAI's protocol have it there; here it begins the paths.
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

// findProtocol settles which protocol to speak, and at which port.
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

// connect makes a client for each server.
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

// detect asks the server what it is, and returns at which port it answered. If no
// server is named, those on the usual ports of the host are asked.
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
			failed = fmt.Errorf("nobody listens at %s on the usual ports %v: name the server with --base-url", p.Host, ports)
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

// detectAt asks the server at an address what it is.
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
		t.say("The server at %s is taken for %s: %s.", shown, kind.Name, evidence)
		return kind, nil
	case !errors.As(err, &f):
		return kind, &AnsweredError{fmt.Errorf("%s: %w", shown, err)}
	case f.Status != 0:
		return kind, t.trouble(ctx, shown, f, f.Message, "does not say what it is: %s")
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
			return nil, errors.New("--header: write KEY=VALUE")
		}
		h.Set(key, value)
	}
	return h, nil
}

// dial makes a client for a server. It connects when there is something to send.
func (t *Target) dial(base string) (*transport.Client, error) {
	tlsConfig, err := t.tls()
	if err != nil {
		return nil, err
	}
	return transport.New(transport.Options{
		BaseURL: base, Clock: t.clock, TLS: tlsConfig, Proxy: t.env.Proxy, HTTP2: t.Plan.HTTP2, DialTimeout: t.askTimeout(), Dial: t.env.Dial,
	})
}

// chooseClock settles what is to stamp arrivals. Where that is left open, the wire
// clock has to show that it is sound before it is taken.
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
	if err := transport.CheckWire(ctx); err != nil {
		t.clock = tacho.KernelClock
		t.say("Arrivals are stamped by the kernel: %v.", err)
	}
	return nil
}

func (t *Target) tls() (*tls.Config, error) {
	p := &t.Plan
	return transport.TLSConfig(transport.TLSOptions{
		Insecure: p.Insecure, CAFile: p.CACert, CertFile: p.ClientCert, KeyFile: p.ClientKey,
	})
}

// questions are the options of a backend that is only asked what it serves.
func (t *Target) questions() backend.Options {
	return backend.Options{
		Endpoint: t.Plan.Endpoint, Model: t.Model, APIKey: t.env.APIKey, Header: t.header, Extra: t.Plan.ExtraBody, Secrets: t.env.Secrets,
	}
}

// open makes the servers ready for requests. If there is a tokenizer, it counts what
// they generate, so the text must be kept.
func (t *Target) open(context.Context) error {
	p, o := &t.Plan, t.questions()
	o.Sampling, o.Logprobs, o.Extras, o.OnToken = p.Sampling, p.Logprobs, p.Extras, t.env.OnToken
	o.KeepText = t.counting.tokenizer != nil || p.SaveDetailed || p.Some(func(k workload.Kind) bool { return k.Quotes })
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

// inspect asks what nobody has to tell: how long prompts may be, where the
// metrics pages are, which versions run.
func (t *Target) inspect(ctx context.Context) error {
	if t.limit == 0 {
		t.findLimit(ctx)
	}
	t.findPages(ctx)
	t.describe(ctx)
	return ctx.Err()
}

// Warm dials n connections, shared out among the servers, and keeps at least
// so many spare ones.
func (t *Target) Warm(ctx context.Context, n, least int) error {
	share := func(n int) int { return (n + len(t.clients) - 1) / len(t.clients) }
	for _, c := range t.clients {
		if err := c.Warm(ctx, share(n), share(least)); err != nil {
			return err
		}
	}
	return nil
}

// Flush has the servers forget the prompts they know, where the plan says so.
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

// Cannot tells the reader of a report what the protocol has no way to ask for.
func (t *Target) Cannot() []metric.Reason {
	if t.Kind.ExactLength || t.Kind.Pools {
		return nil
	}
	return []metric.Reason{{
		Code: "output-length", Severity: metric.Note,
		Text: t.Kind.Name + " servers cannot be asked for an exact output length: the one asked for is an upper bound, and outputs are as long as the model likes; compare runs by TTFT and TPOT, not by E2EL",
	}}
}

// Unkept tells the reader of a report which servers close connections.
func (t *Target) Unkept() []metric.Reason {
	var reasons []metric.Reason
	for i, c := range t.clients {
		if !c.Keeps() {
			reasons = append(reasons, metric.Reason{
				Code: "connections", Severity: metric.Note,
				Text: "the server at " + t.Plan.ShownURLs()[i] + " closes connections after an answer although it says that it keeps them: from the first of them on, each request had a connection of its own; raise its keep-alive time to measure without connecting",
			})
		}
	}
	return reasons
}

// Wire is what the clients have seen at the network device so far.
func (t *Target) Wire() (seen []tap.Stats) {
	for _, c := range t.clients {
		seen = append(seen, c.Wire())
	}
	return seen
}

// Network is what a reader should know of the way to the servers, by what was
// seen at the network device since then.
func (t *Target) Network(then []tap.Stats) []metric.Reason {
	var reasons []metric.Reason
	for i, now := range t.Wire() {
		reasons = append(reasons, networkReasons(t.Plan.ShownURLs()[i], now.Since(then[i]))...)
	}
	return reasons
}

func networkReasons(server string, s tap.Stats) []metric.Reason {
	if s.Repeated+s.Reordered == 0 {
		return nil
	}
	return []metric.Reason{{
		Code: "network", Severity: metric.Note,
		Text: fmt.Sprintf("of %d segments to %s and back, %d were sent again and %d came out of order: the time that took was lost on the way, and not in the server",
			s.Segments, server, s.Repeated, s.Reordered),
	}}
}

// Profile has the server start its profiler, and returns how to stop it.
func (t *Target) Profile(ctx context.Context) (func(), error) {
	switch {
	case !t.Plan.Profile:
		return func() {}, nil
	case t.Plan.ProfileAt > 0:
		return t.profileWhenFull(ctx), nil
	}
	return t.startProfile(ctx)
}

// profileWhenFull has the server profile itself for a while, from when so many
// requests run as the plan asks for, and returns how to stop that.
func (t *Target) profileWhenFull(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() {
		for full := false; !full; {
			select {
			case <-ctx.Done():
				t.say("The server was not profiled: its metrics page never said that %d requests run.", t.Plan.ProfileAt)
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

// profileLook is how often we look whether the server is full; its page is read
// every --metrics-interval.
const profileLook = 50 * time.Millisecond

func (t *Target) startProfile(ctx context.Context) (func(), error) {
	p := t.server.(backend.Profiler)
	if err := t.askProfiler(ctx, p, true); err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	t.say("Profiler started.")
	return func() {
		// The run may have been stopped; its profile is wanted all the same.
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
