//go:build !unix

package cli

import "os/exec"

func adopt() {}

func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd, now bool) {
	_ = cmd.Process.Kill() // no graceful way available
}

func groupLives(cmd *exec.Cmd) bool { return false }
