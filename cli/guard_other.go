//go:build !unix

package cli

import "os/exec"

func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd, now bool) {
	_ = cmd.Process.Kill() // there is no gentler way
}

func groupLives(cmd *exec.Cmd) bool { return false }
