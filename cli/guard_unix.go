//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the first of a process group.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	withParent(cmd)
}

// endGroup asks all of the command's group to end, or makes them.
func endGroup(cmd *exec.Cmd, now bool) {
	sig := syscall.SIGTERM
	if now {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, sig) // nobody may be left
}

// groupLives says whether anybody of the group is left.
func groupLives(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, 0) == nil }
