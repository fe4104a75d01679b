package cli

import (
	"os/exec"
	"syscall"
)

// withParent has the kernel kill the command when its parent is gone.
func withParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
