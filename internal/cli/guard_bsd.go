//go:build unix && !linux

package cli

import (
	"os/exec"
	"syscall"
)

func withParent(*exec.Cmd) {}

func adopt() {}

// descendants returns nil, because only Linux hands orphans to a subreaper. A process that
// left the command's group is not stopped here.
func descendants(int) []int { return nil }

func signalDescendants(int, syscall.Signal) {}
