package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/nats-io/nuid"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
)

// agents manages the agents of a run. NATS and local agents start before the
// first level, so that an invalid plan starts nothing.
type agents struct {
	env  *Env
	plan *plan.Machines
	runs string // directory of runs
	to   string // the servers, as flags of an agent
	say  func(string)
	name string // name of the run, for NATS
	goOn bool   // continues an earlier run

	admitted    func(key string) bool // by the embedded NATS server; nil without one
	coordinator *cluster.Coordinator
	stops       []func() // in reverse order
}

// UnderWay implements run.Agents.
func (a *agents) UnderWay(ctx context.Context, level int) (bool, error) {
	if !a.goOn {
		return false, nil
	}
	if err := a.start(); err != nil {
		return false, err
	}
	return a.coordinator.UnderWay(ctx, level)
}

// Prepare implements run.Agents.
func (a *agents) Prepare(ctx context.Context, t *run.Task) error {
	if err := a.start(); err != nil {
		return err
	}
	return a.coordinator.Prepare(ctx, t)
}

// Drive implements run.Agents.
func (a *agents) Drive(ctx context.Context, d *run.Drive) ([]metric.Agent, []metric.Reason, error) {
	return a.coordinator.Drive(ctx, d)
}

// close stops everything that was started. Remote agents stay if this run continues.
func (a *agents) close(continues bool) {
	if a == nil {
		return
	}
	if a.coordinator != nil {
		_ = a.coordinator.Close(!continues) // all records are stored by now
	}
	for len(a.stops) > 0 {
		last := len(a.stops) - 1
		a.stops[last]()
		a.stops = a.stops[:last]
	}
}

// start creates the coordinator with its dependencies, unless it exists.
func (a *agents) start() error {
	if a.coordinator != nil {
		return nil
	}
	p := a.plan
	identity, err := a.identity()
	if err != nil {
		return err
	}
	access := cluster.Access{
		URL: p.NATS, Name: "tacho coordinator", Creds: p.NATSCreds, NKey: p.NATSNKey, CA: p.NATSCA, Cert: p.NATSCert, Key: p.NATSKey,
		Token: cmp.Or(p.NATSToken, a.env.Getenv(natsTokenVariable)),
	}
	a.env.secrets.Add(access.Token)
	switch {
	case p.Local:
		err = a.local(&access, identity)
	case p.NATS == "":
		err = a.serve(&access, identity)
	}
	access.Identity = identity
	if err != nil {
		return err
	}
	a.coordinator, err = cluster.New(cluster.Options{
		Access: access, Identity: identity, Version: bench.Build(), Agents: p.Agents, Wait: p.AgentWait.Duration(), Timeout: p.AgentTimeout.Duration(),
		OnLoss: p.OnLoss, Say: a.say, Run: a.name, Resume: a.goOn, Trusts: a.trusts, Journal: a.journal(),
	})
	return err
}

// journal returns the file that lets another coordinator continue the run. Local agents end with
// their coordinator.
func (a *agents) journal() string {
	if a.plan.Local {
		return ""
	}
	return filepath.Join(a.runs, ".agents", a.name+".journal")
}

// trusts reports whether an agent may join. The embedded NATS server has checked the
// agent's token or its key. At any other NATS server the user names the keys.
func (a *agents) trusts(key string) bool {
	if a.admitted != nil {
		return a.admitted(key)
	}
	return slices.Contains(a.plan.TrustAgent, key) || slices.Contains(a.plan.TrustAgent, plan.AnyAgent)
}

// identity returns the signing key of this coordinator. Local agents get a new
// key; other agents know the stored key from earlier runs.
func (a *agents) identity() (*cluster.Identity, error) {
	if a.plan.Local {
		return cluster.NewIdentity()
	}
	path, err := configFile("coordinator.nk")
	if err != nil {
		return nil, err
	}
	return cluster.StoredIdentity(path)
}

// local starts NATS and agents on this machine.
func (a *agents) local(access *cluster.Access, identity *cluster.Identity) error {
	dir, err := os.MkdirTemp("", "tacho-agents")
	if err != nil {
		return err
	}
	a.stops = append(a.stops, func() { _ = os.RemoveAll(dir) })
	access.Token = nuid.Next()
	nats, err := cluster.Serve(cluster.ServerOptions{Address: "127.0.0.1:0", Identity: identity, Token: access.Token})
	if err != nil {
		return err
	}
	a.stops = append(a.stops, nats.Close)
	a.admitted, access.URL = nats.Admitted, nats.URL()
	over := make(chan struct{})
	var g sync.WaitGroup
	started := make(chan error, a.plan.Agents)
	for i := range a.plan.Agents {
		name := fmt.Sprintf("local-%d", i+1)
		start := func() (func(), <-chan struct{}, error) {
			_, stop, gone, err := startChild(a.env, []string{natsTokenVariable + "=" + access.Token},
				"agent", "--join", access.URL, "--name", name, "--trust", identity.Public(), "--allow-target", run.AnyTarget, "--allow-read", anyFile, "--spool", filepath.Join(dir, name))
			return stop, gone, err
		}
		g.Go(func() { attend(start, started, over) })
	}
	a.stops = append(a.stops, func() { close(over); g.Wait() })
	for range a.plan.Agents {
		if err := <-started; err != nil {
			return fmt.Errorf("start agents on this machine: %w", err)
		}
	}
	return nil
}

// restarts is the maximum number of restarts of a local agent.
const restarts = 3

// attend runs a local agent until over is closed. It restarts an agent that
// dies, because the new agent delivers the finished records of the old one.
func attend(start func() (func(), <-chan struct{}, error), started chan<- error, over <-chan struct{}) {
	stop, gone, err := start()
	started <- err
	for n := 0; err == nil; n++ {
		select {
		case <-gone:
			if n == restarts {
				return
			}
			stop, gone, err = start()
		case <-over:
			stop()
			return
		}
	}
}

// serve starts NATS for remote agents and prints how they join.
func (a *agents) serve(access *cluster.Access, identity *cluster.Identity) error {
	shown := "$" + natsTokenVariable
	if access.Token == "" {
		access.Token = identity.Derive("nats token " + a.name) // one per run; a resumed run has the same, so that its agents come back
		shown = access.Token                                   // the user needs it to start agents
	}
	known, err := openKnownAgents()
	if err != nil {
		return err
	}
	nats, err := cluster.Serve(cluster.ServerOptions{
		Address: a.plan.NATSListen, Identity: identity, Token: access.Token,
		Known:    func(key string) bool { return known.has(key) || slices.Contains(a.plan.TrustAgent, key) },
		Remember: func(key string) { known.add(key, a.say) },
	})
	if err != nil {
		return err
	}
	a.stops = append(a.stops, nats.Close)
	a.admitted, access.URL = nats.Admitted, nats.URL()
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	a.say(fmt.Sprintf("Start agents with: %s=%s tacho agent --join '%s' --trust %s%s", natsTokenVariable, shown, nats.Join(host), identity.Public(), a.to))
	return nil
}
