//go:build real

package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
)

// embedded starts the NATS server of a coordinator.
func embedded(t *testing.T, known func(string) bool) (*pool, *cluster.Server) {
	t.Helper()
	identity := must.Get(cluster.NewIdentity())(t)
	s := must.Get(cluster.Serve(cluster.ServerOptions{Address: "127.0.0.1:0", Identity: identity, Token: token, Known: known}))(t)
	t.Cleanup(s.Close)
	return &pool{access: cluster.Access{URL: s.URL(), Token: token}, identity: identity}, s
}

// leadEmbedded returns the coordinator of an embedded server.
func (p *pool) leadEmbedded(t *testing.T, s *cluster.Server, n int) *cluster.Coordinator {
	t.Helper()
	return p.lead(t, n, func(o *cluster.Options) { o.Access.Identity, o.Access.Token, o.Trusts = p.identity, "", s.Admitted })
}

// A wiretap forwards connections and keeps all bytes.
type wiretap struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(b)
}

// between listens, and forwards connections to an address.
func (w *wiretap) between(t *testing.T, to string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(io.MultiWriter(way[0], w), way[1])
					_ = way[0].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// TestRealListenerLearnsNothing checks that neither the token, nor a key of the plan, nor a
// NATS subject appears in the bytes between an agent and the embedded server.
func TestRealListenerLearnsNothing(t *testing.T) {
	p, s := embedded(t, nil)
	var tap wiretap
	address, pin, _ := strings.Cut(strings.TrimPrefix(s.URL(), "tls://"), "#")
	far := p.access
	far.URL = "tls://" + tap.between(t, address) + "#" + pin
	url, got := p.serve(t)
	p.join(t, "agent", func(o *cluster.AgentOptions) { o.Access = far })
	q := planFor(url, nil)
	q.Header = []string{"X-Key=canary-4711"}
	checkComplete(t, p.execute(t.Context(), q, p.leadEmbedded(t, s, 1)), got, 42)
	tap.mu.Lock()
	defer tap.mu.Unlock()
	if tap.all.Len() < 10_000 {
		t.Fatalf("only %d bytes were heard", tap.all.Len())
	}
	for _, secret := range []string{token, "canary-4711", "tacho.", "r-7", p.identity.Public(), "INFO", "CONNECT"} {
		if bytes.Contains(tap.all.Bytes(), []byte(secret)) {
			t.Errorf("a listener reads %q", secret)
		}
	}
}

// TestRealStrangersStayOut checks that the coordinator refuses an agent without the token,
// that an agent refuses a server in the middle or without TLS, and that a known key needs no
// token.
func TestRealStrangersStayOut(t *testing.T) {
	var known string
	p, s := embedded(t, func(key string) bool { return key == known })
	join := func(spool string, change func(*cluster.Access)) (key string, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := cluster.AgentOptions{Access: p.access, Name: "agent", Version: "test", Spool: spool, SpoolLimit: 1 << 30, Env: p.env, Say: p.said.say}
		change(&o.Access)
		o.Joined = func(k string) { key = k; cancel() }
		err = cluster.RunAgent(ctx, o)
		return key, err
	}
	other := must.Get(cluster.NewIdentity())(t)
	spool := t.TempDir()
	for name, c := range map[string]struct {
		change func(*cluster.Access)
		says   string
	}{
		"no token":      {func(a *cluster.Access) { a.Token = "" }, "NATS requires credentials"},
		"a wrong token": {func(a *cluster.Access) { a.Token = "wrong" }, "NATS rejects this token"},
		"another server": {func(a *cluster.Access) {
			address, _, _ := strings.Cut(a.URL, "#")
			a.URL = address + "#" + other.Pin()
		}, "does not match the fingerprint"},
		"half a fingerprint": {func(a *cluster.Access) { a.URL = a.URL[:len(a.URL)-4] }, "is not a fingerprint"},
		"no TLS":             {func(a *cluster.Access) { a.URL = "nats" + strings.TrimPrefix(a.URL, "tls") }, "must begin with tls://"},
	} {
		if _, err := join(spool, c.change); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	key, err := join(spool, func(*cluster.Access) {})
	if err != nil || !s.Admitted(key) {
		t.Errorf("the right token: %v", err)
	}
	p, _ = embedded(t, func(k string) bool { return k == known })
	known = key
	if again, err := join(spool, func(a *cluster.Access) { a.Token = "" }); err != nil || again != key {
		t.Errorf("a key that was admitted before: %v", err)
	}
}

// TestRealStrangersAreLimited checks that of many connections without a key only the newest 64 stay, and that
// an agent joins meanwhile.
func TestRealStrangersAreLimited(t *testing.T) {
	p, s := embedded(t, nil)
	address, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "tls://"), "#")
	var open atomic.Int32
	for range 400 {
		c := must.Get(net.Dial("tcp", address))(t)
		t.Cleanup(func() { _ = c.Close() })
		open.Add(1)
		go func() {
			_, _ = io.Copy(io.Discard, c) // until the server disconnects
			open.Add(-1)
		}()
	}
	p.join(t, "agent", nil)
	eventually(t.Context(), func() bool { return open.Load() <= 64 })
	// The agent is one of the 64 if it was connecting at that moment. Without the limit, NATS disconnects all after its timeout.
	if n := open.Load(); n < 63 {
		t.Errorf("%d connections stay", n)
	}
}

// TestRealAgentReadsNoOthersMessages checks the permissions of an agent at the embedded
// server: it cannot read commands and records of others, nor publish in their names.
func TestRealAgentReadsNoOthersMessages(t *testing.T) {
	p, _ := embedded(t, nil)
	pair, public, _ := userKey(t)
	address, _, _ := strings.Cut(p.access.URL, "#")
	nc := must.Get(nats.Connect(address, nats.Nkey(public, pair.Sign), nats.Token(token), nats.TLSHandshakeFirst(),
		nats.Secure(&tls.Config{InsecureSkipVerify: true}), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})))(t)
	defer nc.Close()
	for _, subject := range []string{">", "tacho.agent.>", "tacho.run.>", "_INBOX.>", "$JS.API.>"} {
		must.Get(nc.SubscribeSync(subject))(t)
		must.Do(t, nc.Flush())
		if err := nc.LastError(); err == nil || !strings.Contains(err.Error(), `Subscription to "`+subject) {
			t.Errorf("it may listen at %s: %v", subject, err)
		}
	}
	for _, subject := range []string{"tacho.run.r.records.0-x.UOTHER.0", "tacho.run.r.beat.UOTHER", "tacho.agent.UOTHER.id.order", "$JS.API.STREAM.DELETE.tacho-r"} {
		must.Do(t, nc.Publish(subject, []byte("x")))
		must.Do(t, nc.Flush())
		if err := nc.LastError(); err == nil || !strings.Contains(err.Error(), `Publish to "`+subject) {
			t.Errorf("it may publish at %s: %v", subject, err)
		}
	}
}
