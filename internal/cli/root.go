// Package cli implements the commands: it converts arguments to a plan and
// results to an exit code. It is the only package that uses the process's
// arguments, environment, streams and signals. Each command has its own file.
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

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/jsonscan"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/terminal"
	"github.com/tacho-bench/tacho/outcome"
)

// Env is the process environment of the commands.
type Env struct {
	Args      []string // without the program's name
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	Getenv    func(string) string
	Environ   []string   // all variables, to detect misspelled ones
	Terminal  bool       // stdout and stderr are a terminal
	Width     func() int // of the terminal
	Height    func() int
	Interrupt <-chan os.Signal // Ctrl-C, or another signal to stop
	Kill      func(code int)   // exits immediately
	// Browse opens a file in a browser; nil if there is no desktop.
	Browse func(path string) error
	// Network is for tests in virtual time; nil uses the kernel's network. With
	// a Network, the simulated engine runs in this process.
	Network Network
	// Server is for tests: it replaces the engine of --sim in virtual time.
	Server func(seed uint64) predict.Server

	main      func(*Env) int      // Main, for a child in this process
	bare      io.Writer           // raw stdout for binary output
	altScreen *terminal.AltScreen // alternate screen of the live view
	seen      func(*outcome.Run)  // receives results before they are stored, for tests
	secrets   *redact.Secrets     // removed from all output
	again     *atomic.Bool        // a supervisor restarts this process after SIGTERM, and the run continues
	keeps     *atomic.Bool        // a run directory exists
	reads     *atomic.Bool        // only reading, so that a signal can exit immediately
	quit      chan os.Signal      // the key q of the live view, as an interrupt
	vllm      bool                // the command line is that of vLLM: bench serve
	borrowed  *borrowedPlan       // the plan of a stored run, if that run alone names the servers
}

// System returns the Env of the real process.
func System() *Env {
	interrupt := make(chan os.Signal, 2)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(interrupt, syscall.SIGHUP)
	}
	return &Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Environ: os.Environ(), Interrupt: interrupt, Kill: os.Exit, Browse: browse,
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

// exitError is an error with an exit code. An empty text means that the command
// has already printed the error.
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

// usage marks an error as a usage error.
func usage(err error) error { return &exitError{exitUsage, err} }

// commands are all commands of the program.
var commands = []func(*Env) *cobra.Command{newBench, newInit, newFind, newSweep, newGuard, newPredict, newFit, newData, newSim, newAgent, newKeys, newReport, newOpen, newCompare, newBaseline, newUI, newMetrics, newSelfcheck, newMan, newVersion}

// Main runs the program and returns its exit code.
func Main(process *Env) int {
	screened := *process
	env := &screened
	env.main = Main
	env.secrets, env.again, env.keeps, env.reads = secretsOf(env), &atomic.Bool{}, &atomic.Bool{}, &atomic.Bool{}
	env.altScreen = terminal.NewAltScreen(process.Stderr)
	env.quit = make(chan os.Signal, 1)
	defer env.altScreen.Leave() // also on a panic
	stdout := &terminal.Writer{To: env.altScreen.Before(process.Stdout, false), Sweep: env.secrets.Sweep, Paint: env.coloured()}
	stderr := &terminal.Writer{To: env.altScreen.Before(process.Stderr, true), Sweep: env.secrets.Sweep, Paint: env.coloured()}
	if env.Terminal {
		stderr.Width = env.Width
	}
	env.Stdout, env.Stderr, env.bare = stdout, stderr, process.Stdout
	code := execute(env)
	env.altScreen.Leave()
	if err := errors.Join(stdout.Flush(), stderr.Flush()); err != nil && code == exitOK {
		return exitFailed
	}
	return code
}

func execute(env *Env) int {
	ctx, stop := interruptible(context.Background(), env)
	defer stop()
	root := newRoot(env)
	args, translated, err := translateLine(env, root, env.Args)
	if err == nil {
		args, err = expand(root, args)
	}
	if err == nil {
		err = onlyOnce(root, args, translated)
	}
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
  tacho report last
  tacho compare last~1 last`,
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
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = showHelp(env, cmd) }) // Main checks for errors of stdout
	root.PersistentFlags().Bool(helpAllFlag, false, "show all flags, details, variables and exit codes")
	root.PersistentFlags().BoolP("help", "h", false, "show help")
	root.Flags().Bool("version", false, "print version and commit")
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(badFlag(env, cmd, err)) })
	root.SetHelpCommand(helpCommand(env))
	for _, c := range commands {
		cmd := c(env)
		cmd.Args = usersOwn(cmd.Args)
		cmd.Flags().SortFlags = false // the most used flags are first
		if asksForWords(env.Args) {
			completeWords(env, cmd)
		}
		root.AddCommand(cmd)
	}
	addCompletion(root)
	return root
}

// usersOwn marks errors about arguments as usage errors.
func usersOwn(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(err)
		}
		return nil
	}
}

// conclude prints the error, if any, and returns the exit code.
func conclude(ctx context.Context, env *Env, err error) int {
	if err == nil {
		return exitOK
	}
	code, text := exitFailed, jsonscan.ErrorText(err)
	var exit *exitError
	var bad *run.UsageError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case errors.As(err, &bad):
		code = exitUsage
	case errors.Is(err, context.Canceled):
		code, text = stopCode(ctx), "stopped before the measurement"
	}
	if text != "" {
		_, _ = fmt.Fprintln(env.Stderr, "tacho:", text) // errors of stderr are ignored
	}
	return code
}

// A stopped is the signal that canceled a context.
type stopped struct{ os.Signal }

func (s stopped) Error() string { return "stopped by " + s.String() }

// stopCode returns the exit code for a canceled ctx.
func stopCode(ctx context.Context) int {
	var by stopped
	errors.As(context.Cause(ctx), &by)
	return signalCode(by.Signal)
}

// restarts reports whether a supervisor ended this process and starts it again, as
// Kubernetes does when it moves a pod. The agents then wait for the next start.
func (env *Env) restarts(ctx context.Context) bool {
	var by stopped
	return env.again.Load() && errors.As(context.Cause(ctx), &by) && by.Signal == syscall.SIGTERM
}

func signalCode(by os.Signal) int {
	if number, ok := by.(syscall.Signal); ok {
		return exitSignaled + int(number)
	}
	return exitSignaled + int(syscall.SIGINT)
}

// echo is the time in which a repeated signal counts as the same one: timeout
// and closing terminals signal the process and then its process group.
const echo = 500 * time.Millisecond

// interruptible returns a context canceled by the first signal. The second
// signal exits the process.
func interruptible(ctx context.Context, env *Env) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	signaled := func() os.Signal {
		select {
		case by := <-env.Interrupt:
			return by
		case by := <-env.quit:
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
		kept := map[bool]string{true: "; finished requests are stored"}[env.keeps.Load()]
		_, _ = fmt.Fprintf(env.Stderr, "\nStopping%s. Press Ctrl-C again to exit immediately.\n", kept)
		cancel(stopped{by})
		for signaled() != nil {
			if time.Since(first) >= echo {
				env.altScreen.Leave()
				env.Kill(stopCode(ctx))
				return
			}
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}
