package library

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/tacho-bench/tacho/bench"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
)

// start returns the Start of a simulated engine.
func start(profile string) func(*plan.Plan, func(error)) (func(), error) {
	return func(p *plan.Plan, _ func(error)) (func(), error) {
		engine, err := step.Load(profile)
		if err != nil {
			return nil, err
		}
		server, err := sim.New(sim.Options{Profile: &engine})
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go func() { _ = server.Serve(l) }()
		p.BaseURL = []string{"http://" + l.Addr().String()}
		return func() { _, _ = l.Close(), server.Close() }, nil
	}
}

// Start a server with two settings, and measure it at two rates with each.
func Example_sweep() {
	p := plan.Default()
	p.NumPrompts, p.RunsDir, p.Seed = 5, must(os.MkdirTemp("", "runs")), new(uint64(1))
	defer func() { _ = os.RemoveAll(p.RunsDir) }()
	if err := p.Set("request-rate", "50,100"); err != nil {
		log.Fatal(err)
	}
	var settings []bench.Setting
	for _, name := range []string{"vllm-8b-h100", "vllm-8b-h200"} {
		settings = append(settings, bench.Setting{Values: outcome.Coordinates{{Name: "engine", Value: name}}, Start: start(name)})
	}
	result, err := bench.Sweep(context.Background(), p, settings, bench.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range result.Levels {
		fmt.Println(l.Value, l.Summary.Completed)
	}
	// Output:
	// vllm-8b-h100 50 5
	// vllm-8b-h100 100 5
	// vllm-8b-h200 50 5
	// vllm-8b-h200 100 5
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A server that does not start or exits ends its setting. The other settings are measured.
func TestSweepContinues(t *testing.T) {
	p := plan.Default()
	p.NumPrompts, p.RunsDir = 5, t.TempDir()
	broken, exited := errors.New("no memory"), errors.New("exit status 1")
	settings := []bench.Setting{
		{Values: outcome.Coordinates{{Name: "n", Value: "1"}}, Start: start("vllm-8b-h100")},
		{Values: outcome.Coordinates{{Name: "n", Value: "2"}}, Start: func(*plan.Plan, func(error)) (func(), error) { return nil, broken }},
		{Values: outcome.Coordinates{{Name: "n", Value: "3"}}, Start: func(p *plan.Plan, died func(error)) (func(), error) {
			l := must(net.Listen("tcp", "127.0.0.1:0"))
			p.BaseURL = []string{"http://" + l.Addr().String()}
			go func() {
				_ = http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { died(exited) }))
			}()
			return func() { _ = l.Close() }, nil
		}},
		{Values: outcome.Coordinates{{Name: "n", Value: "4"}}, Start: start("vllm-8b-h100")},
	}
	result, err := bench.Sweep(t.Context(), p, settings, bench.Options{})
	if !errors.Is(err, broken) || !errors.Is(err, exited) {
		t.Errorf("error %v", err)
	}
	var values []string
	for _, l := range result.Levels {
		values = append(values, l.Value)
	}
	if fmt.Sprint(values) != "[1 4]" {
		t.Errorf("levels %v", values)
	}
}
