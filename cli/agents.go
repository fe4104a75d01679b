package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/nats-io/nuid"

	"tacho/bench"
	"tacho/cluster"
	"tacho/metric"
	"tacho/plan"
	"tacho/run"
)

// agents are those of a run. NATS and local agents are started when the first
// level is due: a plan that cannot be carried out starts nothing.
type agents struct {
	env  *Env
	plan *plan.Machines
	runs string // directory of runs
	to   string // the servers, as agents are told them
	say  func(string)
	name string // of the run, for NATS
	goOn bool   // it was begun before

	coordinator *cluster.Coordinator
	stops       []func() // the last first
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

// close ends all that was started.
func (a *agents) close() {
	if a == nil {
		return
	}
	if a.coordinator != nil {
		_ = a.coordinator.Close() // records are kept by now
	}
	for len(a.stops) > 0 {
		last := len(a.stops) - 1
		a.stops[last]()
		a.stops = a.stops[:last]
	}
}

// start makes a coordinator, with what it needs, unless there is one.
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
	if err != nil {
		return err
	}
	a.coordinator, err = cluster.New(cluster.Options{
		Access: access, Identity: identity, Version: bench.Build(), Agents: p.Agents, Wait: p.AgentWait.Duration(), Timeout: p.AgentTimeout.Duration(),
		OnLoss: p.OnLoss, Say: a.say, Run: a.name, GoOn: a.goOn,
	})
	return err
}

// identity is the key that this coordinator signs with. Local agents are told a
// new one; others know it by what it was before.
func (a *agents) identity() (*cluster.Identity, error) {
	if a.plan.Local {
		return cluster.NewIdentity()
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("there is no place for the coordinator's key: %w", err)
	}
	path := filepath.Join(dir, "tacho", "coordinator.nk")
	seed, err := os.ReadFile(path)
	switch {
	case err == nil:
		identity, err := cluster.ReadIdentity(seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return identity, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	identity, err := cluster.NewIdentity()
	if err != nil {
		return nil, err
	}
	if seed, err = identity.Seed(); err != nil {
		return nil, err
	}
	return identity, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, seed, 0o600))
}

// local starts NATS and agents on this machine.
func (a *agents) local(access *cluster.Access, identity *cluster.Identity) error {
	dir, err := os.MkdirTemp("", "tacho-agents")
	if err != nil {
		return err
	}
	a.stops = append(a.stops, func() { _ = os.RemoveAll(dir) })
	access.Token = nuid.Next()
	nats, err := cluster.Serve("127.0.0.1:0", access.Token, filepath.Join(dir, "nats"))
	if err != nil {
		return err
	}
	a.stops = append(a.stops, nats.Close)
	access.URL = nats.URL()
	over := make(chan struct{})
	var g sync.WaitGroup
	started := make(chan error, a.plan.Agents)
	for i := range a.plan.Agents {
		name := fmt.Sprintf("local-%d", i+1)
		start := func() (func(), <-chan struct{}, error) {
			_, stop, gone, err := startChild(a.env, []string{natsTokenVariable + "=" + access.Token},
				"agent", "--join", access.URL, "--name", name, "--trust", identity.Public(), "--allow-target", cluster.AnyTarget, "--spool", filepath.Join(dir, name))
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

// restarts bounds how often a local agent that died is started again.
const restarts = 3

// attend keeps a local agent going until over. One that dies is started again: it
// hands over what the one before had finished.
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

// serve starts NATS for agents elsewhere, and says how they join.
func (a *agents) serve(access *cluster.Access, identity *cluster.Identity) error {
	shown := "$" + natsTokenVariable
	if access.Token == "" {
		access.Token = identity.Derive("nats token") // the same when the run goes on, so that agents come back
		shown = access.Token                         // whoever starts the agents needs it
	}
	nats, err := cluster.Serve(a.plan.NATSListen, access.Token, filepath.Join(a.runs, ".nats"))
	if err != nil {
		return err
	}
	a.stops = append(a.stops, nats.Close)
	access.URL = nats.URL()
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	a.say(fmt.Sprintf("Start agents with: %s=%s tacho agent --join nats://%s:%s --trust %s%s", natsTokenVariable, shown, host, nats.Port(), identity.Public(), a.to))
	return nil
}
