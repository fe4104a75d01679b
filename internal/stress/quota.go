//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuMax is 30 ms of CPU time in every 100 ms, on all cores together.
const cpuMax = "30000 100000"

// cgroup is the directory of a control group with a CPU quota.
type cgroup string

// newCgroup makes a control group with a CPU quota in the nearest parent of this
// process's control group that permits one.
func newCgroup(ctx context.Context) (cgroup, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", errors.New("this system has no control groups")
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	candidates := parents(string(mounts), string(own))
	if len(candidates) == 0 {
		return "", errors.New("control groups of version 2 are not mounted")
	}
	var errs []error
	for _, parent := range candidates {
		c := cgroup(filepath.Join(parent, "stress-"+strconv.Itoa(os.Getpid())))
		err := c.create(ctx)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no control group accepts cpu.max (%w)", errs[0])
}

// parents returns the directories of a process's control group and its parents, nearest
// first. Its arguments are the contents of /proc/self/mounts and /proc/self/cgroup.
func parents(mounts, own string) []string {
	var mount string
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			mount = fields[1]
		}
	}
	if mount == "" {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(own) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ok && path != "/" && path != "." {
			dirs = append(dirs, filepath.Join(mount, path))
			path = filepath.Dir(path)
		}
	}
	return append(dirs, mount)
}

// create makes the control group, sets its quota and checks that a process can be moved
// there.
func (c cgroup) create(ctx context.Context) error {
	if err := os.Mkdir(string(c), 0o755); err != nil {
		return err
	}
	err := c.write("cpu.max", cpuMax)
	if err == nil {
		err = c.try(ctx)
	}
	if err != nil {
		c.remove()
	}
	return err
}

func (c cgroup) try(ctx context.Context) error {
	h, err := startHelper(ctx, busyHelper)
	if err != nil {
		return err
	}
	defer h.stop()
	return c.add(h.cmd.Process.Pid)
}

// add moves a process to the control group.
func (c cgroup) add(pid int) error { return c.write("cgroup.procs", strconv.Itoa(pid)) }

func (c cgroup) write(name, text string) error {
	f, err := os.OpenFile(filepath.Join(string(c), name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// remove kills the processes of the control group and removes it. The kernel removes a control group only after its
// last process has ended.
func (c cgroup) remove() {
	_ = c.write("cgroup.kill", "1")
	for range 100 {
		if os.Remove(string(c)) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
