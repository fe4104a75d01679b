package cli

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// own starts the command in a process group that the kernel kills when this process dies. Orphans of the command become
// children of this process.
func own(cmd *exec.Cmd) {
	detach(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it, only the group is stopped
}
