package bench

import (
	"context"
	"net"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
)

// serveSim starts the simulated engine of a plan, if it has one, and sets its
// address in the plan.
func serveSim(p *plan.Plan, seed uint64) (stop func(), err error) {
	if p.Sim == "" {
		return func() {}, nil
	}
	if err := TakeProtocol(p); err != nil {
		return nil, err
	}
	profile, err := step.Load(p.Sim)
	if err != nil {
		return nil, err
	}
	server, err := sim.New(sim.Options{Profile: &profile, Adapters: p.LoraModules, Speedup: p.SimSpeedup, Seed: seed, Precise: true, ForgetTruth: true})
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		_ = server.Close()
		return nil, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(l) // returns when closed
	}()
	p.BaseURL = []string{"http://" + l.Addr().String()}
	return func() {
		_ = l.Close()
		<-over
		_ = server.Close()
	}, nil
}

// TakeProtocol sets the protocol of the plan's simulated engine, unless the
// plan sets one.
func TakeProtocol(p *plan.Plan) error {
	profile, err := step.Load(p.Sim)
	if err != nil || p.Given("backend") {
		return err
	}
	p.Backend = plan.Default().Backend
	if kind, err := backend.Find(profile.Engine); err == nil {
		p.Backend = kind.Name
	}
	return nil
}
