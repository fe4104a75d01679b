package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// newGuard returns the command of the process between tacho and a server started by tacho. It stops the server and all
// processes of the server when its standard input is closed: by tacho, or because tacho was killed.
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
	own(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, env.Stdin) // any error means that tacho has exited
		close(alone)
	}()
	var err error
	exited, grace := make(chan struct{}), time.Duration(0)
	go func() {
		err = cmd.Wait()
		close(exited)
	}()
	select {
	case <-exited:
	case <-alone:
		grace = 15 * time.Second // to exit after SIGTERM
	}
	if !stopProcesses(cmd, exited, grace) {
		_, _ = fmt.Fprintf(env.Stderr, "tacho: processes of the server do not end: group %d. Stop them by hand.\n", cmd.Process.Pid)
	}
	var exit *exec.ExitError
	switch {
	case grace > 0: // as intended
		return nil
	case errors.As(err, &exit):
		return &exitError{code: max(exit.ExitCode(), exitFailed)}
	}
	return err
}
