package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
)

// sweepFlags are the flags of sweep besides those of bench.
type sweepFlags struct {
	command string
	params  []string
	shell   bool
	planFlags
}

func newSweep(env *Env) *cobra.Command {
	p := plan.Default()
	f := &sweepFlags{}
	cmd := &cobra.Command{
		Use:   "sweep --serve-cmd COMMAND [--serve-param NAME=VALUE,VALUE] [-- flags of bench]",
		Short: "Measure a server with several settings, starting it for each",
		Long: `sweep starts a server, waits until it answers, runs bench, stops the server, and
repeats this for the next setting. All levels are stored as one run, with the
server settings as coordinates and the server logs (serve-0.log, ...). It ends
with one table and the settings on the Pareto front of throughput and speed.

{name} in the command is a setting: --serve-param name=16,64,256 sets its values,
and several settings are combined. {port} is a free port, which bench uses as
well. The command runs without a shell, unless --serve-shell is given.

The server and the processes it started are stopped at the end, after a failure, on
Ctrl-C, and when tacho itself is killed: with SIGTERM, and 15 seconds later with
SIGKILL. On Linux this includes processes that left the server's process group
(setsid); on other systems those keep running. If a server exits by itself, sweep
reports an error with the end of its log.`,
		Example: `  tacho sweep --serve-cmd "vllm serve Qwen/Qwen3-8B --port {port} --max-num-seqs {n}" --serve-param n=16,64,256 -- --request-rate 4,8,16 --num-prompts 500
  tacho sweep --serve-cmd "tacho sim --profile {profile} --port {port}" --serve-param profile=vllm-8b-h100,sglang-70b-h100x4 -- --max-concurrency 8 --num-prompts 64`,
		Args: flagsOnly, Annotations: map[string]string{passesOn: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.read(env, &p); err != nil {
				return usage(err)
			}
			return f.run(cmd.Context(), env, p)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.command, "serve-cmd", "", "command that starts the server; {name} is a setting, {port} a free port")
	fs.StringArrayVar(&f.params, "serve-param", nil, "setting and its values, as NAME=VALUE,VALUE; repeatable")
	fs.BoolVar(&f.shell, "serve-shell", false, "run the command in a shell")
	f.bind(fs, "print the commands and the plan without starting anything")
	bind(fs, &p)
	return cmd
}

// run checks the flags and measures all settings.
func (f *sweepFlags) run(ctx context.Context, env *Env, p plan.Plan) error {
	command, err := parseServe(f.command, f.shell, f.params)
	if err != nil {
		return usage(err)
	}
	command.hideSecrets(env.secrets)
	if p.Sim != "" {
		return usage(errors.New("--sim cannot be combined with sweep, use --serve-cmd \"tacho sim --profile ... --port {port}\""))
	}
	if command.choosesPort() && (len(p.BaseURL) > 0 || p.Given("port")) {
		return usage(errors.New("{port} is chosen by tacho and cannot be combined with --base-url or --port"))
	}
	if !p.Given("ready-check-timeout-sec") {
		p.ReadyCheck = 600 // seconds: a server may load a large model
	}
	if f.dry {
		return command.show(env, p)
	}
	b, err := newBenchRun(env, &p, nil)
	if err != nil {
		return err
	}
	defer b.free(ctx)
	b.settings = len(command.names)
	s := &serverSweep{command: command, run: b}
	return s.measure(ctx, p)
}

// show prints the commands and the plan.
func (c *serverCommand) show(env *Env, p plan.Plan) error {
	settings := c.settings()
	for _, at := range settings {
		words, err := c.words(at, portPlaceholder) // chosen when the server starts
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(env.Stdout, "# "+env.secrets.Hide(strings.Join(words, " "))); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(env.Stdout, "# Each of these %d commands is measured with this plan:\n", len(settings)); err != nil {
		return err
	}
	return dryRun(env, p)
}

// A serverSweep is a sweep in progress.
type serverSweep struct {
	command *serverCommand
	run     *benchRun
	server  *served // nil if none is running
	log     int     // number of its log
	said    string  // end of the last server's output
}

// measure measures all settings in order.
func (s *serverSweep) measure(ctx context.Context, p plan.Plan) error {
	var settings []bench.Setting
	for i, at := range s.command.settings() {
		start := func(p *plan.Plan, died context.CancelCauseFunc) (func(), error) { return s.start(i, at, p, died) }
		settings = append(settings, bench.Setting{At: at, Start: start, Explain: s.explain})
	}
	b := s.run
	err := b.bench.Sweep(ctx, p, settings, func(i int) error {
		b.prepared = func() error { return s.server.keep(logName(b.bench.Keep.Dir(), i)) }
		b.progress.Setting(i+1, len(settings))
		return b.opened(ctx)
	})
	b.progress.Stop()
	err = b.conclude(ctx, err)
	if len(b.bench.Outcome.Levels) > 1 {
		err = errors.Join(err, report.Write(b.env.Stdout, report.Pareto, &report.Report{Runs: []outcome.Run{b.bench.Outcome}}))
	}
	return err
}

// start starts the server with setting i.
func (s *serverSweep) start(i int, at outcome.Coordinates, p *plan.Plan, died context.CancelCauseFunc) (stop func(), err error) {
	s.run.progress.Stop()
	s.said = ""
	s.server, err = s.command.start(s.run.env, p, at, p.RunsDir, died)
	s.log = i
	return s.end, err
}

// explain adds the output of a server that was not measured, because the log is stored
// with a run only.
func (s *serverSweep) explain(err error) error {
	if s.said == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, s.said)
}

// end stops the running server, if there is one.
func (s *serverSweep) end() {
	if s.server == nil {
		return
	}
	secrets := s.run.env.secrets
	s.said = secrets.Hide(s.server.tail())
	s.server.stop()
	if keep := s.run.bench.Keep; keep != nil {
		defer func(path string) { _ = sweepLog(path, secrets) }(logName(keep.Dir(), s.log))
		_ = s.server.keep(logName(keep.Dir(), s.log)) // fails if the log was moved before
	}
	_ = os.Remove(s.server.log.Name()) // the log of a server that was not measured
	s.server = nil
}
