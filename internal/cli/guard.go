package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// guardGrace is the time a server has to exit after SIGTERM.
const guardGrace = 15 * time.Second

// newGuard returns the command of the process between tacho and a server
// started by tacho. When its standard input is closed, it stops the server and
// all processes of the server. This happens on request, and also if tacho is
// killed.
func newGuard(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "guard -- COMMAND", Short: "Run a command that ends when standard input does", Hidden: true,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return guard(env, args) },
	}
}

func guard(env *Env, args []string) error {
	runtime.LockOSThread()                        // the server gets a signal when this thread exits
	cmd := exec.Command(args[0], args[1:]...)     //nolint:gosec,noctx // it is the user's own command, and ends below
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // files instead of pipes, which could outlive the server
	ownGroup(cmd)
	adopt()
	if err := cmd.Start(); err != nil {
		return err
	}
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, env.Stdin) // any error means that tacho has exited
		close(alone)
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		stopAll(env, cmd) // remaining processes
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return &exitError{code: max(exit.ExitCode(), exitFailed)}
		}
		return err
	case <-alone:
	}
	endGroup(cmd, false)
	ctx, cancel := context.WithTimeout(context.Background(), guardGrace)
	defer cancel()
	for groupLives(cmd) && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	stopAll(env, cmd)
	return nil
}

// killTries bounds how often the processes of a server are killed: a process may start
// another one while it is being killed.
const killTries = 50

// stopAll kills all processes of a server, and names those that do not end.
func stopAll(env *Env, cmd *exec.Cmd) {
	for range killTries {
		endGroup(cmd, true)
		if !groupLives(cmd) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, _ = fmt.Fprintf(env.Stderr, "tacho: processes of the server do not end: group %d. Stop them by hand.\n", cmd.Process.Pid)
}
