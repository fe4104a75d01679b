package cli

import (
	"context"
	"errors"
	"fmt"
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

// startTime is the default timeout in seconds for the first answer of a server.
const startTime = 600

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
		p.ReadyCheck = startTime
	}
	if f.dry {
		return command.show(env, p)
	}
	s := &serverSweep{command: command, env: env, plan: p}
	return s.run(ctx)
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
	env     *Env
	plan    plan.Plan
	bench   *benchRun // nil until the first server answers
	server  *served
	log     int    // number of its log
	said    string // end of the last server's output
}

// run measures all settings in order. A failed setting does not end the sweep,
// unless nothing was measured before.
func (s *serverSweep) run(ctx context.Context) error {
	defer s.free(ctx)
	var failed error
	for i, at := range s.command.settings() {
		err := s.setting(ctx, i, at)
		if ctx.Err() != nil || errors.As(err, new(bench.DiskFull)) {
			failed = err
			break
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", nameOf(at), err))
			if s.bench == nil || s.bench.bench.Keep == nil {
				return failed
			}
			s.bench.Message(fmt.Sprintf("%s failed, the sweep continues: %v", nameOf(at), err))
		}
	}
	if s.bench == nil {
		return failed
	}
	err := s.bench.conclude(ctx, failed)
	if len(s.bench.bench.Outcome.Levels) > 1 {
		err = errors.Join(err, show(s.env.Stdout, report.Pareto, &report.Report{Runs: []outcome.Run{s.bench.bench.Outcome}}))
	}
	return err
}

// free stops the agents, if there are any, and stops publishing metrics.
func (s *serverSweep) free(ctx context.Context) {
	if s.bench != nil {
		s.bench.agents.close(s.bench.env.restarts(ctx)) //nolint:contextcheck // as in benchRun.close
		s.bench.bench.Unpublish(ctx)
	}
}

// nameOf describes a setting.
func nameOf(at outcome.Coordinates) string {
	if len(at) == 0 {
		return "the server"
	}
	var out []string
	for _, c := range at {
		out = append(out, strings.TrimPrefix(c.Name, bench.ServePrefix)+"="+c.Value)
	}
	return strings.Join(out, " ")
}

// setting starts the server with one setting, measures it and stops it.
func (s *serverSweep) setting(ctx context.Context, i int, at outcome.Coordinates) error {
	up, died := context.WithCancelCause(ctx)
	defer died(nil)
	s.said = ""
	serve := func(p *plan.Plan, _ uint64) (func(), error) {
		server, err := s.command.start(s.env, p, at, s.plan.RunsDir, died)
		if err != nil {
			return nil, err
		}
		s.server, s.log = server, i
		return s.end, nil
	}
	defer s.end()
	if err := s.open(up, serve); err != nil {
		return s.unopened(up, err)
	}
	b := s.bench
	defer b.disconnect()
	b.bench.Outer, b.bench.Base = at, len(b.bench.Outcome.Levels)
	b.prepared = func() error { return s.server.keep(logName(b.bench.Keep.Dir(), i)) }
	b.progress.begins(i+1, len(s.command.settings()))
	err := b.bench.Run(up)
	b.progress.stop()
	return s.why(up, err)
}

// open connects to the server. The first call starts the run.
func (s *serverSweep) open(ctx context.Context, serve func(*plan.Plan, uint64) (func(), error)) (err error) {
	if s.bench == nil {
		s.bench, err = openBench(ctx, s.env, s.plan, serve, nil)
		return err
	}
	return s.bench.reconnect(ctx, s.plan, serve)
}

// why returns the cause of a failed setting: the exit of the server, if it
// exited.
func (s *serverSweep) why(ctx context.Context, err error) error {
	var died *serverDied
	if errors.As(context.Cause(ctx), &died) {
		return died
	}
	return err
}

// unopened returns the error of a server that was not measured, with its
// output, because the log is stored with a run only.
func (s *serverSweep) unopened(ctx context.Context, err error) error {
	s.end()
	if ctx.Err() != nil || s.said == "" {
		return s.why(ctx, err)
	}
	return fmt.Errorf("%w\n%s", err, s.said)
}

// end stops the running server, if there is one.
func (s *serverSweep) end() {
	if s.server == nil {
		return
	}
	s.said = s.env.secrets.Hide(s.server.tail())
	s.server.stop()
	if s.bench != nil && s.bench.bench.Keep != nil {
		defer func(path string) { _ = sweepLog(path, s.env.secrets) }(logName(s.bench.bench.Keep.Dir(), s.log))
		_ = s.server.keep(logName(s.bench.bench.Keep.Dir(), s.log)) // fails if the log was moved before
	}
	s.server.drop()
	s.server = nil
}
