package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
)

// simFlags are the flags of sim.
type simFlags struct {
	opt     sim.Options
	profile string
	host    string
	port    int
	truth   string
	list    bool
	child   bool
}

func newSim(env *Env) *cobra.Command {
	f := &simFlags{}
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve a simulated inference engine, for machines without a GPU",
		Long: `sim is an inference server without a GPU. It supports the protocols of OpenAI
(completions, chat, responses, embeddings), TGI, SGLang, llama.cpp, Ollama and
Anthropic, all on one port, with the timing of the simulated engine: a profile of
--list, your own profile, or fixed times with --ttft and --itl.

A token is one word with the space before it, so that tokens are easy to count.
/metrics has the metric names of the simulated engine. /sim/truth has the arrival
time and all token times of every finished request; a request with the header
X-Sim-Truth gets the same data as a trailer.`,
		Example: `  tacho sim --list
  tacho sim --profile tgi-405b-mi300x --port 8000
  tacho sim --ttft 200ms --itl 20ms --port 0
  tacho sim --profile vllm-8b-h100 --speedup 10 --fault 503=1% --fault pause:1.3s@60s`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("port") && f.port < 0 {
				return usage(fmt.Errorf("--port %d: want a port, or 0 for any free port", f.port))
			}
			for _, name := range []string{"ttft", "itl"} {
				if f.profile != "" && cmd.Flags().Changed(name) {
					return usage(fmt.Errorf("--%s cannot be combined with --profile %s, which has its own times", name, f.profile))
				}
			}
			if !cmd.Flags().Changed("port") {
				f.port = -1
			}
			return f.run(cmd.Context(), env)
		},
	}
	f.bind(cmd)
	return cmd
}

func (f *simFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.profile, "profile", "", "engine to simulate: a name from --list, or a .yaml file")
	fs.DurationVar(&f.opt.TTFT, "ttft", 100*time.Millisecond, "without a profile: time to the first token")
	fs.DurationVar(&f.opt.ITL, "itl", 10*time.Millisecond, "without a profile: time between tokens")
	fs.StringVar(&f.host, "host", "127.0.0.1", "address to listen on")
	fs.IntVar(&f.port, "port", 0, "port to listen on; 0 for any free port (default: the engine's usual port)")
	fs.StringVar(&f.opt.Engine, "engine", "", "protocol: "+strings.Join(sim.Engines(), ", ")+" (default: the profile's)")
	fs.StringVar(&f.opt.Model, "model", "", "name of the model (default: the profile's)")
	fs.StringSliceVar(&f.opt.Adapters, "lora-modules", nil, "names of adapters to serve")
	fs.BoolVar(&f.opt.ToolParser, "enable-auto-tool-choice", false, "with the vLLM protocol: accept tool calls")
	fs.IntVar(&f.opt.MaxModelLen, "max-model-len", 0, "context length in tokens (default: the profile's)")
	fs.IntVar(&f.opt.MaxConcurrent, "max-concurrent-requests", 0, "maximum concurrent requests, more are rejected; 0 means unlimited")
	fs.StringVar(&f.opt.APIKey, "api-key", "", "refuse POST requests without this API key with status 401")
	fs.Float64Var(&f.opt.Speedup, "speedup", 1, "speed-up factor")
	fs.Uint64Var(&f.opt.Seed, "seed", 0, "random seed")
	fs.StringArrayVar(&f.opt.Faults, "fault", nil, "fault to inject, as NAME[:ARG...][=RATE%][@START[+LENGTH][/PERIOD]]; repeatable")
	fs.StringVar(&f.truth, "truth", "", "JSON lines file for the true times of every request")
	fs.BoolVar(&f.child, childFlag, false, "stop when standard input is closed by the parent process")
	_ = fs.MarkHidden(childFlag) // the flag exists
	fs.BoolVar(&f.list, "list", false, "print the profiles and exit")
}

func (f *simFlags) run(ctx context.Context, env *Env) error {
	if f.list {
		return listProfiles(env.Stdout)
	}
	if f.profile != "" {
		p, err := step.Load(f.profile)
		if err != nil {
			return usage(err)
		}
		f.opt.Profile = &p
	}
	if f.truth != "" {
		file, err := os.Create(f.truth)
		if err != nil {
			return fmt.Errorf("--truth: %w", err)
		}
		defer func() { _ = file.Close() }() // already written
		f.opt.TruthLog = file
	}
	f.opt.Precise = env.Network == nil
	server, err := sim.New(f.opt)
	if err != nil {
		return usage(err)
	}
	return errors.Join(f.serve(ctx, env, server), server.Close())
}

func (f *simFlags) serve(ctx context.Context, env *Env, server *sim.Server) error {
	if f.port < 0 {
		f.port = sim.DefaultPort(server.Engine())
	}
	l, err := env.listen(ctx, net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("%w; --port 0 uses any free port", err)
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s with protocol %s on http://%s (Ctrl-C stops it)\n",
		cmp.Or(f.profile, "fixed times"), server.Engine(), l.Addr()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if f.child {
		go func() {
			_, _ = io.Copy(io.Discard, env.Stdin) // any error means that the parent has exited
			_ = l.Close()
		}()
	}
	return server.Serve(l)
}

// listProfiles prints one line per profile.
func listProfiles(w io.Writer) error {
	for _, name := range step.Names() {
		p, err := step.Load(name)
		if err != nil {
			return err
		}
		about, _, _ := strings.Cut(p.About, ". ") // first sentence
		if _, err := fmt.Fprintf(w, "%-26s %-9s %s\n%37s%s\n", name, p.Engine, p.Model, "", about); err != nil {
			return err
		}
	}
	return nil
}
