package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// childFlag starts the simulator as a child of bench.
const childFlag = "child"

// ofAnyServer are server options that do not select a server.
var ofAnyServer = []string{"label", "sim-speedup", "virtual", "balance", "clock", "request-id-prefix", "request-id-format", "metrics-interval"}

// namesServer reports whether a flag selects a server.
func namesServer(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Options(), func(o plan.Option) bool {
		return o.Group == "Server" && o.Given() && !slices.Contains(ofAnyServer, o.Name)
	})
}

// chooseTarget selects the server or the simulated engine. The engine is used
// on request, or if no flag selects a server.
func chooseTarget(env *Env, p *plan.Plan) error {
	if !namesServer(p) {
		p.Sim = "vllm-8b-h100"
		said := "No server given, measuring the simulated engine %s. Select a server with --base-url.\n"
		if p.Virtual {
			said = "No engine given, computing with a model of %s. Select an engine with --engine (bench: --sim): a profile of tacho sim --list, or a file of tacho fit.\n"
		}
		_, _ = fmt.Fprintf(env.Stderr, said, p.Sim) // informational
	}
	if p.Sim == "" || len(p.Values("sim")) > 1 {
		return nil // each engine has its own protocol
	}
	if err := bench.TakeProtocol(p); err != nil {
		return usage(err)
	}
	return nil
}

// defaultScenario sets a run of about ten seconds that shows all features,
// unless the user set other options.
func defaultScenario(p *plan.Plan) {
	load := []string{"replay", "num-prompts", "request-rate", "max-concurrency", "max-seconds", "ramp-up-strategy", "dataset-name"}
	if slices.ContainsFunc(load, p.Given) {
		return
	}
	p.NumPrompts, p.RequestRate = 400, 40
	if !p.Given("random-input-len") {
		p.RandomInputLen = workload.Fixed(512)
	}
}

// announced matches the address in the first line of the simulator.
var announced = regexp.MustCompile(`http://\S+`)

// startSim starts the simulated engine of the plan, if it has one, as a
// separate process, so that client and engine do not delay each other. It uses
// the seed of the run, so that a repeated run gets the same answers.
func startSim(env *Env, p *plan.Plan, seed uint64) (stop func(), err error) {
	if p.Sim == "" {
		return func() {}, nil
	}
	if err := bench.TakeProtocol(p); err != nil {
		return nil, err
	}
	args := []string{"--profile", p.Sim, "--speedup", strconv.FormatFloat(p.SimSpeedup, 'g', -1, 64), "--seed", strconv.FormatUint(seed, 10)}
	if len(p.LoraModules) > 0 {
		args = append(args, "--lora-modules", strings.Join(p.LoraModules, ","))
	}
	url, stop, err := startServer(env, args...)
	p.BaseURL = []string{url}
	return stop, err
}

// startServer starts the simulator as a separate process and returns its URL.
func startServer(env *Env, args ...string) (url string, stop func(), err error) {
	line, stop, _, err := startChild(env, nil, append([]string{"sim", "--host", "127.0.0.1", "--port", "0"}, args...)...)
	if err == nil {
		if url = announced.FindString(line); url == "" {
			stop()
			err = errors.New("unexpected output " + line)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("the simulated engine did not start: %w", err)
	}
	return url, stop, nil
}

// startChild starts this program as a separate process and returns the first
// line of its output. The process exits when stopped, or when this process
// exits; gone is closed after that.
func startChild(env *Env, variables []string, args ...string) (line string, stop func(), gone <-chan struct{}, err error) {
	start := startProcess
	if env.Network != nil {
		start = startInside
	}
	c, err := start(env, variables, append(args, "--"+childFlag))
	if err != nil {
		return "", nil, nil, err
	}
	over := make(chan struct{})
	stop = func() {
		_ = c.stdin.Close() // makes the process exit
		<-over
	}
	out := bufio.NewReader(c.stdout)
	if line, err = out.ReadString('\n'); err != nil {
		_ = c.stdin.Close()
		c.wait()
		return "", nil, nil, err
	}
	go func() {
		_, _ = io.Copy(io.Discard, out) // otherwise the process would block on output
		c.wait()
		close(over)
	}()
	return line, stop, over, nil
}

// A child is another instance of this program.
type child struct {
	stdin  io.Closer // closing it makes the child exit
	stdout io.Reader
	wait   func() // waits for the exit
}

// startProcess starts a child as a separate process.
func startProcess(env *Env, variables, args []string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...) //nolint:noctx // it ends with its standard input
	cmd.Stderr, cmd.Env = env.Stderr, append(withoutVariables(), variables...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{stdin, stdout, func() { _ = cmd.Wait() }}, nil
}

// startInside starts a child in this process, on env's network.
func startInside(env *Env, _, args []string) (*child, error) {
	inner, stdin := io.Pipe()
	stdout, outer := io.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		env.main(&Env{Args: args, Stdin: inner, Stdout: outer, Stderr: env.Stderr, Getenv: func(string) string { return "" }, Network: env.Network})
		_ = outer.Close()
	}()
	return &child{stdin, stdout, func() { <-over }}, nil
}
