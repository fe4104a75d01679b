package cluster_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tacho/cluster"
	"tacho/plan"
)

// nodes starts a cluster of three NATS servers.
func nodes(t *testing.T) (all []*server.Server, urls string) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	var addresses []string
	var free []net.Listener // held until there are three, or one may come twice
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
		must(t, err)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		free = append(free, l)
	}
	for _, l := range free {
		must(t, l.Close())
	}
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: "open sesame", AuthTimeout: patient.Seconds(), NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}, Routes: routes,
		})
		must(t, err)
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	for _, s := range all {
		if !s.ReadyForConnections(patient) {
			t.Fatal("NATS did not start")
		}
		addresses = append(addresses, s.ClientURL())
	}
	for deadline := time.Now().Add(patient); ; time.Sleep(50 * time.Millisecond) {
		for _, s := range all {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 {
				return all, strings.Join(addresses, ",")
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the NATS servers found no leader")
		}
	}
}

// whole complains about records that are lost, doubled, or were never asked for.
func whole(t *testing.T, out result, got *asked, n int) {
	t.Helper()
	must(t, out.err)
	seen := map[string]int{}
	for _, r := range out.records {
		if seen[r.ID]++; seen[r.ID] > 1 || got.bodies[r.ID] == "" || !r.OK() {
			t.Errorf("%s is there %d times, failure %v", r.ID, seen[r.ID], r.Failure)
		}
	}
	if len(seen) != n || len(got.bodies) != n || len(got.twice) > 0 {
		t.Errorf("%d of %d records, the server was asked %d times", len(seen), n, len(got.bodies)+len(got.twice))
	}
}

// A NATS server that dies takes no record with it.
func TestLostNode(t *testing.T) {
	all, urls := nodes(t)
	identity, err := cluster.NewIdentity()
	must(t, err)
	p := &pool{access: cluster.Access{URL: urls, Token: "open sesame"}, identity: identity}
	for i := range 3 {
		p.join(t, fmt.Sprintf("agent-%d", i), nil)
	}
	url, got := serve(t)
	c := p.lead(t, 3, nil)
	leader := all[0]
	for _, s := range all {
		if s.JetStreamIsLeader() {
			leader = s
		}
	}
	got.midway(t, leader.Shutdown)
	out := execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 150 }), c)
	whole(t, out, got, 150)
}

// A link is a way to NATS that can be cut.
type link struct {
	to string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// newLink makes a way to an address.
func newLink(t *testing.T, to string) (*link, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	k := &link{to: to}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.carry(c)
		}
	}()
	return k, "nats://" + l.Addr().String()
}

func (k *link) carry(in net.Conn) {
	out, err := net.Dial("tcp", k.to)
	k.mu.Lock()
	if err != nil || k.cut {
		_ = in.Close()
		k.mu.Unlock()
		return
	}
	k.conns = append(k.conns, in, out)
	k.mu.Unlock()
	go func() { _, _ = io.Copy(out, in) }()
	_, _ = io.Copy(in, out)
}

// set cuts the way, or mends it.
func (k *link) set(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = cut
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

// An agent that is cut off goes on; when the link is there again, nothing is
// missing and nothing is there twice.
func TestCutLink(t *testing.T) {
	p := newPool(t)
	p.join(t, "near", nil)
	k, far := newLink(t, strings.TrimPrefix(p.access.URL, "nats://"))
	p.join(t, "far", func(o *cluster.AgentOptions) { o.Access.URL = far })
	url, got := serve(t)
	c := p.lead(t, 2, nil)
	got.midway(t, func() {
		k.set(true)
		time.AfterFunc(2500*time.Millisecond, func() { k.set(false) })
	})
	out := execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 90 }), c)
	whole(t, out, got, 90)
	if n := len(out.levels[0].Summary.Config.Agents); n != 2 {
		t.Errorf("%d agents", n)
	}
}
