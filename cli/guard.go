package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// guardGrace is how long a server has to end when it is asked to.
const guardGrace = 15 * time.Second

// newGuard is the process between tacho and a server that it started. It ends the
// server and all that the server started when its standard input ends: that is
// when tacho says so, and also when tacho is gone, however it went.
func newGuard(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "guard -- COMMAND", Short: "Run a command that ends when standard input does", Hidden: true,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return guard(env, args) },
	}
}

func guard(env *Env, args []string) error {
	runtime.LockOSThread()                        // the server is told when this thread ends
	cmd := exec.Command(args[0], args[1:]...)     //nolint:gosec,noctx // it is the user's own command, and ends below
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // files, and no pipes that outlive it
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, env.Stdin) // whatever ends it, nobody is there
		close(alone)
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		endGroup(cmd, true) // what it left behind
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
	endGroup(cmd, true)
	return nil
}
