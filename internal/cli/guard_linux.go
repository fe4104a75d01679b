package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// withParent asks the kernel to kill the command when its parent dies.
func withParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// adopt makes this process the parent of descendants whose parents have died, so that
// processes which left the command's group with setsid can still be found.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // without it only the group is stopped

// descendants returns the processes below this one, without zombies. It reaps orphans that
// this process adopted; os/exec reaps the command itself.
func descendants(command int) []int {
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// The name in parentheses may contain anything; state and parent follow it.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		switch {
		case err != nil:
		case fields[0] != "Z":
			children[parent] = append(children[parent], pid)
		case parent == os.Getpid() && pid != command:
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it has ended
		}
	}
	var all []int
	for todo := children[os.Getpid()]; len(todo) > 0; {
		all = append(all, todo...)
		var next []int
		for _, pid := range todo {
			next = append(next, children[pid]...)
		}
		todo = next
	}
	return all
}

// signalDescendants signals all processes below this one.
func signalDescendants(command int, sig syscall.Signal) {
	for _, pid := range descendants(command) {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
