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

	"tacho/sim"
	"tacho/sim/step"
)

// simFlags are the words of the command.
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
		Long: `sim is an inference server without a GPU. It speaks the protocols of OpenAI
(completions, chat, responses, embeddings), TGI, SGLang, llama.cpp, Ollama,
Anthropic and Triton, all on one port, and takes as long as the engine it
simulates: one of the profiles that --list shows, a profile of your own, or
fixed times by --ttft and --itl.

A token is one word with the space before it, so that anybody can count them.
Metrics are on /metrics under the names of the engine it poses as, and
/sim/truth has, for every finished request, when it arrived and when each of
its tokens was written; a request with the header X-Sim-Truth gets the same as
a trailer.`,
		Example: `  tacho sim --list
  tacho sim --profile tgi-405b-mi300x --port 8000
  tacho sim --ttft 200ms --itl 20ms --port 0
  tacho sim --profile vllm-8b-h100 --speedup 10 --fault 503=1% --fault pause:1.3s@60s`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("port") && f.port < 0 {
				return usage(fmt.Errorf("--port %d: write 0 for any that is free, or a port", f.port))
			}
			for _, name := range []string{"ttft", "itl"} {
				if f.profile != "" && cmd.Flags().Changed(name) {
					return usage(fmt.Errorf("--%s is for an engine without a profile, and %s has times of its own: leave one of them out", name, f.profile))
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
	fs.StringVar(&f.profile, "profile", "", "engine to simulate: a name from --list, or a file that ends in .yaml")
	fs.DurationVar(&f.opt.TTFT, "ttft", 100*time.Millisecond, "without a profile: time to the first token")
	fs.DurationVar(&f.opt.ITL, "itl", 10*time.Millisecond, "without a profile: time from one token to the next")
	fs.StringVar(&f.host, "host", "127.0.0.1", "address to listen on")
	fs.IntVar(&f.port, "port", 0, "port to listen on; 0 is any that is free (default: the engine's own)")
	fs.StringVar(&f.opt.Engine, "engine", "", "server to pose as: "+strings.Join(sim.Engines(), ", ")+" (default: the profile's)")
	fs.StringVar(&f.opt.Model, "model", "", "name of the model (default: the profile's)")
	fs.StringSliceVar(&f.opt.Adapters, "lora-modules", nil, "names of adapters to serve besides it")
	fs.BoolVar(&f.opt.ToolParser, "enable-auto-tool-choice", false, "posing as vLLM: understand calls of tools, which it refuses otherwise")
	fs.IntVar(&f.opt.MaxModelLen, "max-model-len", 0, "longest prompt and answer together, in tokens (default: the profile's)")
	fs.IntVar(&f.opt.MaxConcurrent, "max-concurrent-requests", 0, "refuse more requests than this at once; 0 is no limit")
	fs.Float64Var(&f.opt.Speedup, "speedup", 1, "run so many times faster than the real thing")
	fs.Uint64Var(&f.opt.Seed, "seed", 0, "seed of everything that is left to chance")
	fs.StringArrayVar(&f.opt.Faults, "fault", nil, "what shall go wrong: NAME[:ARG...][=RATE%][@START[+LENGTH][/PERIOD]]; may be repeated")
	fs.StringVar(&f.truth, "truth", "", "file that gets the truth about every request, as lines of JSON")
	fs.BoolVar(&f.child, childFlag, false, "stop when standard input ends, as it does when the parent is gone")
	_ = fs.MarkHidden(childFlag) // it was just made
	fs.BoolVar(&f.list, "list", false, "print the profiles and exit")
}

func (f *simFlags) run(ctx context.Context, env *Env) error {
	switch {
	case f.list:
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
			return fmt.Errorf("keep the truth: %w", err)
		}
		defer func() { _ = file.Close() }() // what was written is there already
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
		return fmt.Errorf("%w; --port 0 takes any port that is free", err)
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s posing as %s on http://%s (Ctrl-C stops it)\n",
		cmp.Or(f.profile, "fixed times"), server.Engine(), l.Addr()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if f.child {
		go func() {
			_, _ = io.Copy(io.Discard, env.Stdin) // whatever ends it, the parent is gone
			_ = l.Close()
		}()
	}
	return server.Serve(l)
}

// listProfiles prints a line for each profile.
func listProfiles(w io.Writer) error {
	for _, name := range step.Names() {
		p, err := step.Load(name)
		if err != nil {
			return err
		}
		about, _, _ := strings.Cut(p.About, ". ") // its first sentence
		if _, err := fmt.Fprintf(w, "%-26s %-9s %s\n%37s%s\n", name, p.Engine, p.Model, "", about); err != nil {
			return err
		}
	}
	return nil
}
