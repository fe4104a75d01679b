package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/workload"
)

const (
	token = "open sesame"

	// patient is how long agents and a coordinator wait for each other.
	patient = time.Minute
	// longest bounds the wait for any event. It is shorter than the time limit of the package,
	// so a blocked test fails with a message.
	longest = 5 * time.Minute
	// pollEvery is the time between two checks of a condition.
	pollEvery = 5 * time.Millisecond
)

// eventually waits for a condition, and reports whether it held before ctx was done.
func eventually(ctx context.Context, so func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for ctx.Err() == nil {
		if so() {
			return true
		}
		time.Sleep(pollEvery)
	}
	return false
}

// A pool has NATS, agents, and the servers that receive their requests.
type pool struct {
	network  *memnet.Network // of the servers; nil is the kernel's network
	access   cluster.Access
	identity *cluster.Identity
	said     said
}

// inBubble runs a test in virtual time. NATS runs in this process, and all connections are in
// memory.
func inBubble(t *testing.T, test func(*testing.T, *pool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		identity := must.Get(cluster.NewIdentity())(t)
		p := &pool{network: &memnet.Network{}, access: cluster.Access{URL: "nats://127.0.0.1:4222", Token: token, Dial: startInMemory(t)}, identity: identity}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("coordinator and agents said:\n%s", p.said.all())
			}
		})
		test(t, p)
	})
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { time.Sleep(d) }

// startInMemory starts a NATS server without sockets, and returns a dial function.
func startInMemory(t *testing.T) func(network, address string) (net.Conn, error) {
	t.Helper()
	s := must.Get(server.NewServer(&server.Options{
		ServerName: "tacho", DontListen: true, Authorization: token, NoSigs: true, NoLog: true, MaxPayload: 8 << 20,
	}))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patient) {
		t.Fatal("NATS did not start")
	}
	return func(string, string) (net.Conn, error) { return s.InProcessConn() }
}

// connect returns a connection to NATS for the test itself.
func (p *pool) connect(t *testing.T) *nats.Conn {
	t.Helper()
	nc := must.Get(nats.Connect(p.access.URL, nats.Token(token), nats.SetCustomDialer(dialer(p.access.Dial))))(t)
	t.Cleanup(nc.Close)
	return nc
}

type dialer func(network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// A link is a connection to NATS that a test can cut.
type link struct {
	to func(network, address string) (net.Conn, error)

	mu    sync.Mutex
	cut   bool
	quiet bool // a cut is a network without answers; otherwise connections are refused
	conns []net.Conn
}

// newLink returns a second connection to NATS.
func (p *pool) newLink() (*link, cluster.Access) {
	k, far := &link{to: p.access.Dial}, p.access
	far.Dial = k.dial
	return k, far
}

func (k *link) dial(network, address string) (net.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.cut && k.quiet:
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	case k.cut:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	c, err := k.to(network, address)
	if err == nil {
		k.conns = append(k.conns, c)
	}
	return c, err
}

// set cuts or restores the link.
func (k *link) set(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = cut
	for _, c := range k.conns {
		_ = c.Close() // both ends notice
	}
	k.conns = nil
}

// A requestLog holds the body of each request that a server received, by request id.
type requestLog struct {
	mu         sync.Mutex
	bodies     map[string]string
	duplicates []string               // ids that arrived more than once
	kept       map[string]bool        // ids with a stored record
	held       map[string]bool        // ids whose first request is not answered, and whether it has arrived
	until      map[string]func() bool // ids that are answered when a condition holds
}

// serve runs the simulator.
func (p *pool) serve(t *testing.T) (url string, got *requestLog) {
	t.Helper()
	engine, err := sim.New(sim.Options{TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Model: "tiny"})
	must.Do(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	got = &requestLog{bodies: map[string]string{}, kept: map[string]bool{}, held: map[string]bool{}, until: map[string]func() bool{}}
	srv := &httptest.Server{Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		id := r.Header.Get("X-Request-Id")
		if strings.HasSuffix(r.URL.Path, "completions") && !got.note(id, string(body)) {
			select {
			case <-r.Context().Done(): // the client disconnected
			case <-t.Context().Done():
			}
			return
		}
		if so := got.delay(id); so == nil || eventually(r.Context(), so) {
			engine.ServeHTTP(w, r)
		}
	})}}
	if p.network != nil {
		srv.Listener, err = p.network.Listen(t.Context(), "tcp", "127.0.0.1:0")
	} else {
		srv.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	}
	must.Do(t, err)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL, got
}

// note logs a request, and reports whether to answer it.
func (a *requestLog) note(id, body string) (answer bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.bodies[id]
	if known {
		a.duplicates = append(a.duplicates, id)
	}
	a.bodies[id] = body
	if _, hold := a.held[id]; hold && !known {
		a.held[id] = true
		return false
	}
	return true
}

// hold delays the answer to a request until a condition holds.
func (a *requestLog) hold(id string, so func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until[id] = so
}

// delay returns the condition that a request waits for, or nil.
func (a *requestLog) delay(id string) func() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until[id]
}

// keep notes that a request has a stored record.
func (a *requestLog) keep(r *tacho.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[r.ID] = true
}

// between calls do when one request is stored and another has arrived. The second is not
// answered before its client disconnects, so its agent is in the middle of a share.
func (a *requestLog) between(t *testing.T, kept, held string, do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held[held] = false
	a.when(t, func() bool { return a.kept[kept] && a.held[held] }, do)
}

// after calls do when a number of requests have arrived.
func (a *requestLog) after(t *testing.T, requests int, do func()) {
	a.when(t, func() bool { return len(a.bodies) >= requests }, do)
}

// when calls do as soon as a condition holds.
func (a *requestLog) when(t *testing.T, so func() bool, do func()) {
	locked := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return so()
	}
	go func() {
		if eventually(t.Context(), locked) {
			do()
		}
	}()
}

// said holds the lines that coordinator and agents printed.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// has reports whether a line with a text was printed.
func (s *said) has(text string) bool { return strings.Contains(s.all(), text) }

// await waits for a line.
func (s *said) await(t *testing.T, text string) {
	t.Helper()
	if !eventually(t.Context(), func() bool { return s.has(text) }) {
		t.Fatalf("nobody said %q", text)
	}
}

// env returns the environment of runs in this pool.
func (p *pool) env() run.Env {
	if p.network == nil {
		return run.Env{Random: 42}
	}
	return run.Env{Random: 42, Dial: p.network.Dial}
}

// join adds an agent.
func (p *pool) join(t *testing.T, name string, change func(*cluster.AgentOptions)) (leave func()) {
	t.Helper()
	joined := make(chan struct{})
	o := cluster.AgentOptions{
		Access: p.access, Name: name, Version: "test", Trust: []string{p.identity.Public()}, Allow: []string{"http://127.0.0.1"}, Spool: t.TempDir(), SpoolLimit: 1 << 30,
		Env: p.env, Say: p.said.say, Joined: func(string) { close(joined) }, JoinWait: patient,
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- cluster.RunAgent(ctx, o) }()
	select {
	case <-joined:
	case err := <-over:
		cancel()
		t.Fatal(err)
	}
	leave = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-over:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(longest):
			t.Errorf("agent %s does not end", name)
		}
	})
	t.Cleanup(leave)
	return leave
}

// lead returns a coordinator for n agents.
func (p *pool) lead(t *testing.T, n int, change func(*cluster.Options)) *cluster.Coordinator {
	t.Helper()
	o := cluster.Options{Access: p.access, Identity: p.identity, Version: "test", Agents: n, Wait: patient, Timeout: patient, Say: p.said.say, Trusts: func(string) bool { return true }}
	if change != nil {
		change(&o)
	}
	c := must.Get(cluster.New(o))(t)
	t.Cleanup(func() {
		if err := c.Close(true); err != nil {
			t.Error(err)
		}
	})
	return c
}

// many adds n agents, and returns a coordinator for them.
func (p *pool) many(t *testing.T, n int) *cluster.Coordinator {
	t.Helper()
	for i := range n {
		p.join(t, fmt.Sprintf("agent-%d", i), nil)
	}
	return p.lead(t, n, nil)
}

type records []tacho.Record

func (l *records) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *records) Close() error              { return nil }

// seen passes records to a function as they arrive.
type seen struct {
	*records
	by []func(*tacho.Record)
}

func (s *seen) Add(r *tacho.Record) error {
	err := s.records.Add(r)
	for _, see := range s.by {
		see(r)
	}
	return err
}

func planFor(url string, change func(*plan.Plan)) plan.Plan {
	p := plan.Default()
	p.BaseURL, p.NumPrompts, p.NoTrial, p.RequestIDPrefix = []string{url}, 42, true, "r-"
	p.RandomInputLen, p.RandomOutputLen = workload.Fixed(20), workload.Fixed(5)
	if change != nil {
		change(&p)
	}
	return p
}

// A result holds everything that a run returned.
type result struct {
	records records
	levels  []outcome.Level
	err     error
}

// execute runs a plan, with agents or, if they are nil, without. Each function of see gets the
// stored records.
func (p *pool) execute(ctx context.Context, q plan.Plan, agents run.Agents, see ...func(*tacho.Record)) result {
	done := make(chan result, 1)
	go func() { done <- p.carryOut(ctx, q, agents, see) }()
	select {
	case out := <-done:
		return out
	case <-time.After(longest):
		stacks := make([]byte, 1<<20)
		return result{err: fmt.Errorf("the run did not end in %v; all goroutines:\n%s", longest, stacks[:runtime.Stack(stacks, true)])}
	}
}

func (p *pool) carryOut(ctx context.Context, q plan.Plan, agents run.Agents, see []func(*tacho.Record)) (out result) {
	env := p.env()
	env.Agents, env.Observer = agents, levelObserver{each: func(l *outcome.Level) { out.levels = append(out.levels, *l) }}
	r, err := run.Open(ctx, q, env)
	if err != nil {
		out.err = err
		return out
	}
	defer r.Close()
	out.err = r.Run(ctx, &seen{&out.records, see})
	return out
}

// A levelObserver calls each after each level.
type levelObserver struct {
	live.NopObserver
	each func(*outcome.Level)
}

// LevelEnded implements live.Observer.
func (o levelObserver) LevelEnded(l *outcome.Level) { o.each(l) }

// checkComplete fails the test if records are missing, duplicated or unknown.
func checkComplete(t *testing.T, out result, got *requestLog, n int) {
	t.Helper()
	must.Do(t, out.err)
	seen := map[string]int{}
	for _, r := range out.records {
		if seen[r.ID]++; seen[r.ID] > 1 || got.bodies[r.ID] == "" || !r.OK() {
			t.Errorf("%s is there %d times, failure %v", r.ID, seen[r.ID], r.Failure)
		}
	}
	if len(seen) != n || len(got.bodies) != n || len(got.duplicates) > 0 {
		t.Errorf("%d of %d records, the server was asked %d times", len(seen), n, len(got.bodies)+len(got.duplicates))
	}
}
