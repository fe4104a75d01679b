//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// detach protects the child from Ctrl-C on the terminal, because the parent
// stops it after the last request.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
