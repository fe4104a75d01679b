//go:build real

package cluster_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/plan"
)

// nodes starts a cluster of three NATS servers.
func nodes(t *testing.T) (all []*server.Server, urls string) {
	t.Helper()
	var routes []*url.URL
	for range 3 {
		routes = append(routes, &url.URL{Scheme: "nats", Host: freeAddress(t, privateAddress())})
	}
	for i, route := range routes {
		port, err := strconv.Atoi(route.Port())
		must(t, err)
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token, AuthTimeout: patient.Seconds(), NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), Cluster: server.ClusterOpts{Name: "c", Host: route.Hostname(), Port: port}, Routes: routes,
		})
		must(t, err)
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	var addresses []string
	for _, s := range all {
		if !s.ReadyForConnections(longest) {
			t.Fatal("NATS did not start")
		}
		addresses = append(addresses, s.ClientURL())
	}
	if !eventually(t.Context(), func() bool { return leaderOf(all) >= 0 && len(all[leaderOf(all)].JetStreamClusterPeers()) == 3 }) {
		t.Fatal("the NATS servers found no leader")
	}
	return all, strings.Join(addresses, ",")
}

// leaderOf returns the index of the leader, or -1.
func leaderOf(all []*server.Server) int {
	return slices.IndexFunc(all, (*server.Server).JetStreamIsLeader)
}

// A NATS server that dies loses no records, whatever its role.
func TestRealLostNode(t *testing.T) {
	for duty, of := range map[string]func(t *testing.T, urls string, all []*server.Server) string{
		"leads the servers": func(_ *testing.T, _ string, all []*server.Server) string { return all[max(leaderOf(all), 0)].Name() },
		"leads the stream": func(t *testing.T, urls string, _ []*server.Server) string {
			return runStream(t, urls).CachedInfo().Cluster.Leader
		},
		"hands the records out": func(t *testing.T, urls string, _ []*server.Server) string {
			for c := range runStream(t, urls).ListConsumers(t.Context()).Info() {
				return c.Cluster.Leader
			}
			return ""
		},
	} {
		t.Run(duty, func(t *testing.T) { loseNode(t, of) })
	}
}

// runStream returns the stream of the run.
func runStream(t *testing.T, urls string) jetstream.Stream {
	t.Helper()
	nc, err := nats.Connect(urls, nats.Token(token))
	must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)
	s, err := js.Stream(t.Context(), "tacho-night")
	must(t, err)
	return s
}

// loseNode stops a server during a run.
func loseNode(t *testing.T, which func(t *testing.T, urls string, all []*server.Server) string) {
	const all, before = 60, 20
	servers, urls := nodes(t)
	identity, err := cluster.NewIdentity()
	must(t, err)
	p := &pool{access: cluster.Access{URL: urls, Token: token}, identity: identity}
	for i := range 3 {
		p.join(t, fmt.Sprintf("agent-%d", i), nil)
	}
	url, got := p.serve(t)
	c := p.lead(t, 3, func(o *cluster.Options) { o.Run = "night" })
	var dead atomic.Bool
	for i := before; i < all; i++ {
		got.hold(fmt.Sprintf("r-%d", i), dead.Load)
	}
	kept := make(chan struct{})
	got.when(t, func() bool { return len(got.kept) == before }, func() { close(kept) })
	done := make(chan result, 1)
	go func() {
		done <- p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.NumPrompts = all }), c, got.keep)
	}()
	select {
	case <-kept:
	case out := <-done:
		t.Fatalf("the run ended too soon: %v", out.err)
	}
	name := which(t, urls, servers)
	i := slices.IndexFunc(servers, func(s *server.Server) bool { return s.Name() == name })
	if i < 0 {
		t.Fatalf("no server is called %q", name)
	}
	servers[i].Shutdown()
	servers[i].WaitForShutdown()
	dead.Store(true)
	checkComplete(t, <-done, got, all)
}
