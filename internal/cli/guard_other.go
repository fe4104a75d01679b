//go:build !unix

package cli

import (
	"os/exec"
	"time"
)

func detach(*exec.Cmd) {}

func own(*exec.Cmd) {}

// stopProcesses stops the command itself.
func stopProcesses(cmd *exec.Cmd, exited <-chan struct{}, _ time.Duration) bool {
	_ = cmd.Process.Kill() // it may have ended
	<-exited
	return true
}
