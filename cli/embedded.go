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

	"tacho/bench"
	"tacho/plan"
	"tacho/sim/step"
	"tacho/workload"
)

// childFlag makes the simulator a child of bench.
const childFlag = "child"

// defaultSim is the engine that is measured when nobody names a server.
const defaultSim = "vllm-8b-h100"

// ofAnyServer are the options that say nothing about which server it is.
var ofAnyServer = []string{"label", "sim-speedup", "virtual", "balance", "clock", "request-id-prefix", "request-id-format", "metrics-interval"}

// namesServer says whether a flag says anything about a server.
func namesServer(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Options(), func(o plan.Option) bool {
		return o.Group == "Server" && o.Given() && !slices.Contains(ofAnyServer, o.Name)
	})
}

// chooseTarget decides between a server and the simulated engine: that is
// taken when it is asked for, or when no flag says anything about a server.
func chooseTarget(env *Env, p *plan.Plan) error {
	if !namesServer(p) {
		p.Sim = defaultSim
		said := "No server is named: measuring the simulated engine %s. Name one with --base-url.\n"
		if p.Virtual {
			said = "No engine is named: computing with a model of %s. Name yours with --engine (bench: --sim): a profile of tacho sim --list, or a file of tacho fit.\n"
		}
		_, _ = fmt.Fprintf(env.Stderr, said, p.Sim) // for information
	}
	if p.Sim == "" || len(p.Values("sim")) > 1 {
		return nil // several have a protocol each
	}
	if err := bench.TakeProtocol(p); err != nil {
		return usage(err)
	}
	return nil
}

// defaultScenario is a run of some ten seconds that shows all there is to see,
// as far as the user did not say otherwise.
func defaultScenario(p *plan.Plan) {
	load := []string{"num-prompts", "request-rate", "max-concurrency", "max-seconds", "ramp-up-strategy", "dataset-name"}
	if slices.ContainsFunc(load, p.Given) {
		return
	}
	p.NumPrompts, p.RequestRate = 400, 40
	if !p.Given("random-input-len") {
		p.RandomInputLen = workload.Fixed(512)
	}
}

// announced finds the address in what the simulator says first.
var announced = regexp.MustCompile(`http://\S+`)

// startSim starts the simulated engine, if the plan has one, as a process of
// its own: sharing one, the two would take each other's time. The seed is that
// of the run, so that a run that is repeated gets the same answers.
func startSim(env *Env, p *plan.Plan, seed uint64) (stop func(), err error) {
	if p.Sim == "" {
		return func() {}, nil
	}
	if err := bench.TakeProtocol(p); err != nil {
		return nil, err
	}
	mix, err := step.LoadMix(p.Sim)
	if err != nil {
		return nil, err
	}
	args := []string{"--profile", mix[0].From, "--speedup", strconv.FormatFloat(p.SimSpeedup, 'g', -1, 64), "--seed", strconv.FormatUint(seed, 10)}
	if len(p.LoraModules) > 0 {
		args = append(args, "--lora-modules", strings.Join(p.LoraModules, ","))
	}
	url, stop, err := startServer(env, args...)
	p.BaseURL = []string{url}
	return stop, err
}

// startServer starts the simulator as a process of its own, and says where it
// listens.
func startServer(env *Env, args ...string) (url string, stop func(), err error) {
	line, stop, _, err := startChild(env, nil, append([]string{"sim", "--host", "127.0.0.1", "--port", "0"}, args...)...)
	if err == nil {
		if url = announced.FindString(line); url == "" {
			stop()
			err = errors.New("it said " + line)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("the simulated engine did not start: %w", err)
	}
	return url, stop, nil
}

// startChild starts this program once more, as a process of its own, and returns
// the first line that it prints. It ends when it is stopped, and when this
// process is gone; gone tells that it has.
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
		_ = c.stdin.Close() // which ends it
		<-over
	}
	out := bufio.NewReader(c.stdout)
	if line, err = out.ReadString('\n'); err != nil {
		_ = c.stdin.Close()
		c.wait()
		return "", nil, nil, err
	}
	go func() {
		_, _ = io.Copy(io.Discard, out) // or it would wait for a reader
		c.wait()
		close(over)
	}()
	return line, stop, over, nil
}

// A child is this program, started once more.
type child struct {
	stdin  io.Closer // ends it when it is closed
	stdout io.Reader
	wait   func() // until it has ended
}

// startProcess starts a child as a process of its own.
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
