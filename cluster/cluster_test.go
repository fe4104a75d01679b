package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tacho"
	"tacho/cluster"
	"tacho/outcome"
	"tacho/plan"
	"tacho/run"
	"tacho/sim"
	"tacho/workload"
)

// asked is what a server was asked: the body of each request, by its id.
type asked struct {
	mu     sync.Mutex
	bodies map[string]string
	twice  []string               // ids that came more than once
	kept   map[string]bool        // ids of which a record is kept
	held   map[string]bool        // ids of which the first is not answered, and whether it is here
	until  map[string]func() bool // ids that are answered when something is so
}

// serve runs the simulator on loopback.
func serve(t *testing.T) (url string, got *asked) {
	t.Helper()
	engine, err := sim.New(sim.Options{TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	got = &asked{bodies: map[string]string{}, kept: map[string]bool{}, held: map[string]bool{}, until: map[string]func() bool{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		id := r.Header.Get("X-Request-Id")
		if strings.HasSuffix(r.URL.Path, "completions") && !got.note(id, string(body)) {
			select {
			case <-r.Context().Done(): // whoever sent it hung up
			case <-t.Context().Done():
			}
			return
		}
		for so := got.delay(id); so != nil && !so() && r.Context().Err() == nil && t.Context().Err() == nil; {
			time.Sleep(5 * time.Millisecond)
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

// note takes a request down, and says whether to answer it.
func (a *asked) note(id, body string) (answer bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.bodies[id]
	if known {
		a.twice = append(a.twice, id)
	}
	a.bodies[id] = body
	if _, hold := a.held[id]; hold && !known {
		a.held[id] = true
		return false
	}
	return true
}

// hold has a request answered when something is so.
func (a *asked) hold(id string, so func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until[id] = so
}

// delay is what the answer to a request waits for; nil is nothing.
func (a *asked) delay(id string) func() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until[id]
}

// keep notes that a request is on record.
func (a *asked) keep(r *tacho.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[r.ID] = true
}

// between does something when one request is on record and another, which is not
// answered as long as whoever sent it waits, is here: the agent that has both is in the
// middle of its share, however fast the machine is.
func (a *asked) between(t *testing.T, kept, held string, do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held[held] = false
	a.when(t, func() bool { return a.kept[kept] && a.held[held] }, do)
}

// midway does something when the load is well under way.
func (a *asked) midway(t *testing.T, do func()) { a.after(t, 15, do) }

// after does something when there were so many requests.
func (a *asked) after(t *testing.T, requests int, do func()) {
	a.when(t, func() bool { return len(a.bodies) >= requests }, do)
}

// when does something once a thing is so.
func (a *asked) when(t *testing.T, so func() bool, do func()) {
	is := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return so()
	}
	go func() {
		for !is() {
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		do()
	}()
}

// A pool is NATS with agents in this process.
type pool struct {
	access   cluster.Access
	identity *cluster.Identity
	said     said
}

// said is what somebody was told.
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

// await waits until somebody was told a thing.
func (s *said) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(patient); !strings.Contains(s.all(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nobody said %q", text)
		}
	}
}

// newPool starts NATS.
func newPool(t *testing.T) *pool {
	t.Helper()
	nats, err := cluster.Serve("127.0.0.1:0", "open sesame", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	identity, err := cluster.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	p := &pool{access: cluster.Access{URL: nats.URL(), Token: "open sesame"}, identity: identity}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("coordinator and agents said:\n%s", p.said.all())
		}
	})
	return p
}

// join adds an agent.
func (p *pool) join(t *testing.T, name string, change func(*cluster.AgentOptions)) (leave func()) {
	t.Helper()
	joined := make(chan struct{})
	o := cluster.AgentOptions{
		Access: p.access, Name: name, Version: "test", Trust: []string{p.identity.Public()}, Allow: []string{"http://127.0.0.1"}, Spool: t.TempDir(), Most: 1 << 30,
		Env: func() run.Env { return run.Env{} }, Say: p.said.say, Joined: func() { close(joined) }, JoinWait: patient,
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

// patient is how long is waited for agents that are there: on a machine whose processors
// are taken by others, an agent may not be heard for seconds.
const patient = time.Minute

// lead makes a coordinator for n agents.
func (p *pool) lead(t *testing.T, n int, change func(*cluster.Options)) *cluster.Coordinator {
	t.Helper()
	o := cluster.Options{Access: p.access, Identity: p.identity, Version: "test", Agents: n, Wait: patient, Timeout: patient, Say: p.said.say}
	if change != nil {
		change(&o)
	}
	c, err := cluster.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// many is a pool with n agents and a coordinator for them.
func many(t *testing.T, n int) *cluster.Coordinator {
	t.Helper()
	p := newPool(t)
	for i := range n {
		p.join(t, fmt.Sprintf("agent-%d", i), nil)
	}
	return p.lead(t, n, nil)
}

type records []tacho.Record

func (l *records) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *records) Close() error              { return nil }

// seen are records that somebody sees as they come.
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

// result is all that came out of a run.
type result struct {
	records records
	levels  []outcome.Level
	err     error
}

// longest is how long a run of a test may take. One that hangs says where, before the
// whole package is out of time and says nothing of the others.
const longest = 5 * time.Minute

// execute carries out a plan, by agents or, where there are none, alone. Whoever wants to
// see the records as they are kept does.
func execute(ctx context.Context, p plan.Plan, agents run.Agents, see ...func(*tacho.Record)) result {
	done := make(chan result, 1)
	go func() { done <- carryOut(ctx, p, agents, see) }()
	select {
	case out := <-done:
		return out
	case <-time.After(longest):
		stacks := make([]byte, 1<<20)
		return result{err: fmt.Errorf("the run did not end in %v; all goroutines:\n%s", longest, stacks[:runtime.Stack(stacks, true)])}
	}
}

func carryOut(ctx context.Context, p plan.Plan, agents run.Agents, see []func(*tacho.Record)) (out result) {
	env := run.Env{Random: 42}
	if agents != nil {
		env.Agents = agents
	}
	r, err := run.Open(ctx, p, env, run.Hooks{})
	if err != nil {
		out.err = err
		return out
	}
	defer r.Close()
	out.err = r.Run(ctx, &seen{&out.records, see}, func(l *outcome.Level) { out.levels = append(out.levels, *l) })
	return out
}
