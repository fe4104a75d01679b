//go:build unix

package main

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// helper is a process running this program with helperArgument. It exits when its
// standard input is closed, because the kernel closes the pipe even if this program is
// killed.
type helper struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

const (
	helperArgument = "-helper" // followed by one of these
	busyHelper     = "busy"
	leaderHelper   = "leader"
	guardHelper    = "guard" // followed by a process group, and by true for a pulse
)

// startHelper starts a helper in its own process group, so that a signal to this
// program's group does not end it early.
func startHelper(ctx context.Context, args ...string) (*helper, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append([]string{helperArgument}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &helper{cmd, stdin}, nil
}

// stop ends a helper and waits for it.
func (h *helper) stop() {
	_ = h.stdin.Close()
	_ = h.cmd.Wait()
}

// startLoops starts processes with a busy loop, and returns a function to end them.
func startLoops(ctx context.Context, count int) (stop func(), err error) {
	var loops []*helper
	stop = func() {
		for _, loop := range loops {
			loop.stop()
		}
	}
	for range count {
		loop, err := startHelper(ctx, busyHelper)
		if err != nil {
			stop()
			return nil, err
		}
		loops = append(loops, loop)
	}
	return stop, nil
}

// guarded is a process group. All its processes end when it is stopped or when this
// program is killed.
type guarded struct {
	leader *helper // outlives the group's other processes, to keep the group number
	guard  *helper // not a member of the group
}

// startGuarded starts a process group. If pulse is set, its processes are repeatedly
// stopped and continued.
func startGuarded(ctx context.Context, pulse bool) (*guarded, error) {
	leader, err := startHelper(ctx, leaderHelper)
	if err != nil {
		return nil, err
	}
	guard, err := startHelper(ctx, guardHelper, strconv.Itoa(leader.cmd.Process.Pid), strconv.FormatBool(pulse))
	if err != nil {
		leader.stop()
		return nil, err
	}
	return &guarded{leader, guard}, nil
}

// number returns the number of the process group.
func (g *guarded) number() int { return g.leader.cmd.Process.Pid }

// stop ends all processes of the group.
func (g *guarded) stop() {
	g.guard.stop()
	g.leader.stop()
}

// help is the main function of a helper process.
func help(args []string) {
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(end)
	}()
	switch {
	case len(args) == 1 && args[0] == busyHelper:
		go func() {
			for i := 0; ; i++ {
			}
		}()
		<-end
	case len(args) == 1 && args[0] == leaderHelper:
		<-end
	case len(args) == 3 && args[0] == guardHelper:
		group, err := strconv.Atoi(args[1])
		if err != nil || group <= 1 {
			os.Exit(2)
		}
		if args[2] == "true" {
			go pulseGroup(group)
		}
		<-end
		_ = syscall.Kill(-group, syscall.SIGKILL) // also ends stopped processes
	default:
		os.Exit(2)
	}
}

const (
	pulsePeriod  = time.Second
	pulseLongest = 900 * time.Millisecond // the test runs for the rest of the period, so it makes progress
)

// pulseGroup stops and continues all processes of a group until this process ends.
func pulseGroup(group int) {
	for {
		stopped := rand.N(pulseLongest)
		before := rand.N(pulsePeriod - stopped)
		time.Sleep(before)
		_ = syscall.Kill(-group, syscall.SIGSTOP)
		time.Sleep(stopped)
		_ = syscall.Kill(-group, syscall.SIGCONT)
		time.Sleep(pulsePeriod - stopped - before)
	}
}
