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

// A helper is a process that runs this program with helperArgument. It ends if its standard input ends, because the
// kernel closes the pipe however this program ends.
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

// startHelper starts a helper in a process group of its own, so that a signal to this program's group does not end it
// early.
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

// stop ends a helper and waits until it has ended.
func (h *helper) stop() {
	_ = h.stdin.Close()
	_ = h.cmd.Wait()
}

// startLoops starts processes that use a core each. The function that it returns ends them.
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

// A guarded is a process group whose processes all end when it is stopped, or when this program is killed.
type guarded struct {
	leader *helper // exists longer than all other processes of the group, so that no other group gets its number
	guard  *helper // is not in the group
}

// startGuarded starts a process group. With pulse, its processes are stopped and continued all the time.
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

// number is the number of the process group.
func (g *guarded) number() int { return g.leader.cmd.Process.Pid }

// stop ends all processes of the group.
func (g *guarded) stop() {
	g.guard.stop()
	g.leader.stop()
}

// help is the helper process.
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
		_ = syscall.Kill(-group, syscall.SIGKILL) // this ends stopped processes, too
	default:
		os.Exit(2)
	}
}

const (
	pulsePeriod  = time.Second
	pulseLongest = 900 * time.Millisecond // the rest of the period is for the test, so that the test ends
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
