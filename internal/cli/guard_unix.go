//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// detach protects the child from Ctrl-C on the terminal, because the parent stops it after the last request.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// stopProcesses sends SIGTERM to the command's process group and to processes that left the group, and SIGKILL after
// grace. It reports whether all have ended. On Linux, processes that left the group become children of this process when
// their parents end; on other systems they keep running.
func stopProcesses(cmd *exec.Cmd, exited <-chan struct{}, grace time.Duration) bool {
	signaled := map[int]bool{}
	const killing = time.Second // a process may start another one while it is being killed
	for start := time.Now(); time.Since(start) < grace+killing; time.Sleep(20 * time.Millisecond) {
		for _, process := range append(children(), -cmd.Process.Pid) {
			group, _ := syscall.Getpgid(process)
			switch {
			case group == cmd.Process.Pid: // gets the signal of the group
			case time.Since(start) >= grace:
				_ = syscall.Kill(process, syscall.SIGKILL) // it may have ended
			case !signaled[process]:
				_ = syscall.Kill(process, syscall.SIGTERM) // it may have ended
			}
			signaled[process] = true
		}
		select {
		case <-exited: // from here on, all children are adopted
			if reap() && syscall.Kill(-cmd.Process.Pid, 0) != nil {
				return true
			}
		default:
		}
	}
	return false
}

// children returns the children of this process, on Linux only.
func children() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is correct
	for _, list := range lists {
		text, _ := os.ReadFile(list) // empty if the thread has ended
		for word := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(word) // from the kernel
			pids = append(pids, pid)
		}
	}
	return pids
}

// reap waits for the children that have ended, and reports whether none is left.
func reap() bool {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid == 0 {
			return err != nil
		}
	}
}
