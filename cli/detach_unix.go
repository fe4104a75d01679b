//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C on the terminal from the child: the parent decides when
// it ends, after the last request.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
