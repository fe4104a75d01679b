//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// ownGroup starts the command in a new process group.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	withParent(cmd)
}

// endGroup sends SIGTERM, or SIGKILL if now is set, to the command's process
// group.
func endGroup(cmd *exec.Cmd, now bool) {
	sig := syscall.SIGTERM
	if now {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, sig) // the group may be empty
	signalDescendants(cmd.Process.Pid, sig) // processes that left the group
}

// groupLives reports whether any process of the server is running.
func groupLives(cmd *exec.Cmd) bool {
	others := len(descendants(cmd.Process.Pid)) // reaps zombies, which would keep the group alive
	return others > 0 || syscall.Kill(-cmd.Process.Pid, 0) == nil
}
