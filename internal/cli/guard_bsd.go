//go:build unix && !linux

package cli

import "os/exec"

// own starts the command in a process group.
func own(cmd *exec.Cmd) { detach(cmd) }
