// Package cli turns words into a plan and results into an exit code. It is the
// only package that touches the process: its arguments, environment, streams
// and signals. One verb, one file.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tacho/bench"
	"tacho/internal/jsonscan"
	"tacho/internal/redact"
	"tacho/outcome"
	"tacho/predict"
	"tacho/run"
)

// Env is the process as the commands see it.
type Env struct {
	Args      []string // without the program's name
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	Getenv    func(string) string
	Environ   []string   // all variables, to find those that are misspelt
	Terminal  bool       // somebody watches stdout and stderr
	Width     func() int // of that terminal
	Height    func() int
	Interrupt <-chan os.Signal // Ctrl-C, or whatever else asks it to end
	Kill      func(code int)   // ends the process at once
	// Network is for tests in virtual time; nil is the kernel's. With a Network,
	// the simulated engine runs in this process and not in one of its own.
	Network Network
	// Server is for tests: it answers in virtual time instead of the engine of --sim.
	Server func(seed uint64) predict.Server

	main    func(*Env) int     // Main, for a child that runs in this process
	bare    io.Writer          // stdout as it is, for what is no text
	curtain *curtain           // in front of what is printed
	seen    func(*outcome.Run) // gets what was measured, before it is kept; for tests
	secrets *redact.Secrets    // kept out of all that is printed or kept
	again   *atomic.Bool       // whoever ends it with a signal starts it again, and it goes on from there
	keeps   *atomic.Bool       // there is a run that what it measures is kept in
	reads   *atomic.Bool       // it only reads: there is nothing to bring to an end
}

// System is the Env of the real process.
func System() *Env {
	interrupt := make(chan os.Signal, 2)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(interrupt, syscall.SIGHUP)
	}
	return &Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Environ: os.Environ(), Interrupt: interrupt, Kill: os.Exit,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		Width:    func() int { wide, _ := terminalSize(); return wide },
		Height:   func() int { _, high := terminalSize(); return high },
	}
}

func terminalSize() (wide, high int) {
	wide, high, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || wide == 0 || high == 0 {
		return 80, 24
	}
	return wide, high
}

// exitError is an exit code on its way up. Its text is printed unless it is
// empty: then the command has said all there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as the user's.
func usage(err error) error { return &exitError{exitUsage, err} }

// commands are the verbs.
var commands = []func(*Env) *cobra.Command{newBench, newInit, newFind, newSweep, newGuard, newPredict, newFit, newData, newSim, newAgent, newKeys, newReport, newCompare, newUI, newMetrics, newSelfcheck, newCompletion, newMan, newVersion}

// Main runs the program and returns its exit code.
func Main(process *Env) int {
	screened := *process
	env := &screened
	env.main = Main
	env.secrets, env.again, env.keeps, env.reads = secretsOf(env), &atomic.Bool{}, &atomic.Bool{}, &atomic.Bool{}
	env.curtain = &curtain{terminal: process.Stderr}
	defer env.curtain.open() // also when it all breaks down
	stdout := &screen{to: env.curtain.before(process.Stdout, false), secrets: env.secrets}
	stderr := &screen{to: env.curtain.before(process.Stderr, true), secrets: env.secrets}
	env.Stdout, env.Stderr, env.bare = stdout, stderr, process.Stdout
	code := execute(env)
	env.curtain.open()
	if err := errors.Join(stdout.flush(), stderr.flush()); err != nil && code == exitOK {
		return exitFailed
	}
	return code
}

func execute(env *Env) int {
	ctx, stop := interruptible(context.Background(), env)
	defer stop()
	root := newRoot(env)
	args, err := expand(root, env.Args)
	if err == nil {
		args = fromEnvironment(env, root, args)
	}
	env.Args = publicArgs(env.secrets, args)
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	return conclude(ctx, env, err)
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tacho",
		Short: "Measure the latency and throughput of LLM inference servers",
		Long: `tacho drives an LLM inference server under a known load and reports time to
first token, time per output token, inter-token latency, end-to-end latency,
throughput and goodput, with a verdict on its own measurement.`,
		Example: `  tacho bench
  tacho bench --base-url http://127.0.0.1:8000 --num-prompts 100 --request-rate 20
  tacho find --slo "ttft:p99<500ms,tpot:p95<50ms" --base-url http://127.0.0.1:8000
  tacho report runs/20260301-120000-vllm
  tacho compare runs/20260301-120000-vllm runs/20260302-120000-vllm`,
		SilenceErrors: true, SilenceUsage: true,
		Version: bench.Version(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(unknownCommand(cmd, args[0]))
		},
	}
	root.SetVersionTemplate(versionLine())
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = showHelp(env, cmd) }) // whether it was printed, Main looks
	root.PersistentFlags().Bool(helpAllFlag, false, "all flags, details, variables and exit codes")
	root.PersistentFlags().BoolP("help", "h", false, "help in short")
	root.Flags().Bool("version", false, "print version and commit")
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(badFlag(env, cmd, err)) })
	root.SetHelpCommand(helpCommand(env))
	for _, c := range commands {
		cmd := c(env)
		cmd.Args = usersOwn(cmd.Args)
		cmd.Flags().SortFlags = false // what is used most stands first
		if asksForWords(env.Args) {
			completeWords(env, cmd)
		}
		root.AddCommand(cmd)
	}
	return root
}

// usersOwn says that wrong words after a command are the user's mistake.
func usersOwn(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(err)
		}
		return nil
	}
}

// conclude prints the error, if any, and says what to exit with.
func conclude(ctx context.Context, env *Env, err error) int {
	if err == nil {
		return exitOK
	}
	code, text := exitFailed, jsonscan.Plain(err)
	var exit *exitError
	var bad *run.UsageError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case errors.As(err, &bad):
		code = exitUsage
	case errors.Is(err, context.Canceled):
		code, text = stopCode(ctx), "stopped before anything was measured"
	}
	if text != "" {
		_, _ = fmt.Fprintln(env.Stderr, "tacho:", text) // nobody is left to tell
	}
	return code
}

// A stopped is the signal that ended a context.
type stopped struct{ os.Signal }

func (s stopped) Error() string { return "stopped by " + s.String() }

// stopCode is what to exit with when ctx has been ended.
func stopCode(ctx context.Context) int {
	var by stopped
	errors.As(context.Cause(ctx), &by)
	return signalCode(by.Signal)
}

func signalCode(by os.Signal) int {
	if number, ok := by.(syscall.Signal); ok {
		return exitSignaled + int(number)
	}
	return exitSignaled + int(syscall.SIGINT)
}

// echo is how soon after a signal another is the same one: timeout and closing
// terminals send theirs to the process, and then to its whole group.
const echo = 500 * time.Millisecond

// interruptible is a context that the first signal ends; the second ends the
// process.
func interruptible(ctx context.Context, env *Env) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	signaled := func() os.Signal {
		select {
		case by := <-env.Interrupt:
			return by
		case <-done:
			return nil
		}
	}
	go func() {
		by := signaled()
		if by == nil {
			return
		}
		first := time.Now()
		if env.reads.Load() {
			env.Kill(signalCode(by))
			return
		}
		if by == syscall.SIGTERM && env.again.Load() { // agents are not told to stop
			env.curtain.open()
			_, _ = fmt.Fprintln(env.Stderr, "\nStopped at once: the next start goes on from here.")
			env.Kill(signalCode(by))
			return
		}
		kept := map[bool]string{true: "; what is finished is kept"}[env.keeps.Load()]
		_, _ = fmt.Fprintf(env.Stderr, "\nStopping%s. Press Ctrl-C again to stop at once.\n", kept)
		cancel(stopped{by})
		for signaled() != nil {
			if time.Since(first) >= echo {
				env.curtain.open()
				env.Kill(stopCode(ctx))
				return
			}
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}
