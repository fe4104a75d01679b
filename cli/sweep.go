package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tacho/bench"
	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
)

// sweepFlags are the words of the command, beside those of bench.
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
		Short: "Start a server with one setting after the other, and measure each",
		Long: `sweep starts a server, waits until it answers, runs what bench would run, stops
the server, and goes on with the next setting. All levels are kept as one run,
with the settings of the server as their coordinates and its log beside them
(serve-0.log, ...). At the end there is one table, and the settings that no other
beats in both throughput and speed.

{name} in the command stands for a setting: --serve-param name=16,64,256 gives its
values, and several multiply. {port} stands for a port that is free; bench is
told. The command runs without a shell; --serve-shell runs it in one.

The server and all it started are always stopped: at the end, after a failure, on
Ctrl-C, and when tacho itself is killed. They are asked to end first, and killed
15 seconds later. A server that ends by itself is an error, with the end of its log.`,
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
	fs.StringVar(&f.command, "serve-cmd", "", "command that starts the server; {name} stands for a setting, {port} for a free port")
	fs.StringArrayVar(&f.params, "serve-param", nil, "a setting and its values, as NAME=VALUE,VALUE; may be repeated")
	fs.BoolVar(&f.shell, "serve-shell", false, "run the command in a shell")
	f.bind(fs, "print the commands and the plan, and start nothing")
	bind(fs, &p)
	return cmd
}

// startTime is how long a server may take to answer, where the plan does not say.
const startTime = 600

// run checks the words and measures all settings.
func (f *sweepFlags) run(ctx context.Context, env *Env, p plan.Plan) error {
	command, err := parseServe(f.command, f.shell, f.params)
	if err != nil {
		return usage(err)
	}
	if p.Sim != "" {
		return usage(errors.New("--sim is a server of its own: write --serve-cmd \"tacho sim --profile ... --port {port}\""))
	}
	if command.choosesPort() && (len(p.BaseURL) > 0 || p.Given("port")) {
		return usage(errors.New("{port} is a port that tacho chooses: leave --base-url and --port out"))
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

// show prints what would be started, and the plan.
func (c *serverCommand) show(env *Env, p plan.Plan) error {
	for _, at := range c.settings() {
		words, err := c.words(at, 0)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(env.Stdout, "# "+strings.Join(words, " ")); err != nil {
			return err
		}
	}
	return dryRun(env, p)
}

// A serverSweep is a sweep as it goes on.
type serverSweep struct {
	command *serverCommand
	env     *Env
	plan    plan.Plan
	bench   *benchRun // nil until the first server answers
	server  *served
	log     int    // number of its log
	said    string // the end of what the last one said
}

// run measures one setting after the other. One that fails does not end the
// others, unless nothing was measured yet.
func (s *serverSweep) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.free(ctx)
	var failed error
	for i, at := range s.command.settings() {
		err := s.setting(ctx, stop, i, at)
		if ctx.Err() != nil {
			failed = err
			break
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", nameOf(at), err))
			if s.bench == nil || s.bench.Keep == nil {
				return failed
			}
			s.bench.say(fmt.Sprintf("%s failed, and the sweep goes on: %v", nameOf(at), err))
		}
	}
	if s.bench == nil {
		return failed
	}
	err := s.bench.conclude(ctx, failed)
	if len(s.bench.Outcome.Levels) > 1 {
		err = errors.Join(err, show(s.env.Stdout, report.Pareto, &report.Report{Runs: []outcome.Run{s.bench.Outcome}}))
	}
	return err
}

// free lets the agents go, if there are any, and closes the pages of the run.
func (s *serverSweep) free(ctx context.Context) {
	if s.bench != nil {
		s.bench.agents.close() //nolint:contextcheck // as in bench
		s.bench.Unpublish(ctx)
	}
}

// nameOf is a setting in words.
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

// setting starts the server with one setting, measures it, and stops it.
func (s *serverSweep) setting(ctx context.Context, stop context.CancelCauseFunc, i int, at outcome.Coordinates) error {
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
	b.Stop, b.Outer, b.Base = stop, at, len(b.Outcome.Levels)
	b.Opened = func(dir string) error { return s.server.keep(logName(dir, i)) }
	err := b.Runner.Run(up, b, b.End)
	b.progress.stop()
	return s.why(up, err)
}

// open gets in touch with the server; for the first of them the run begins.
func (s *serverSweep) open(ctx context.Context, serve func(*plan.Plan, uint64) (func(), error)) (err error) {
	if s.bench == nil {
		s.bench, err = openBench(ctx, s.env, s.plan, serve, nil)
		return err
	}
	return s.bench.reconnect(ctx, s.plan, serve)
}

// why is the reason for which a setting failed: the server's end, where it ended.
func (s *serverSweep) why(ctx context.Context, err error) error {
	var died *serverDied
	if errors.As(context.Cause(ctx), &died) {
		return died
	}
	return err
}

// unopened is why a server was not measured at all, with what it said: its log is kept
// only where there is a run.
func (s *serverSweep) unopened(ctx context.Context, err error) error {
	s.end()
	if ctx.Err() != nil || s.said == "" {
		return s.why(ctx, err)
	}
	return fmt.Errorf("%w\n%s", err, s.said)
}

// end stops the server that runs, if one does.
func (s *serverSweep) end() {
	if s.server == nil {
		return
	}
	s.said = s.server.tail()
	s.server.stop()
	if s.bench != nil && s.bench.Keep != nil {
		_ = s.server.keep(logName(s.bench.Keep.Dir(), s.log)) // where it was never measured; else it is there
	}
	s.server.drop()
	s.server = nil
}
