//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// If a test hangs this often under a condition, the remaining runs under the
	// condition skip it, because every hang costs a full timeout.
	hangsEnough = 3

	// The timeout is counted in ticks, so that a paused machine does not look like a
	// hanging test.
	timeoutTicks = 100

	// Time for a hanging test binary to print its goroutines.
	dumpTime = 20 * time.Second

	// Reading stops after this time, because a process outside the group may hold the
	// output open.
	drainTime = 5 * time.Second
)

// campaign is all runs of all packages under all conditions.
type campaign struct {
	options
	tally  *tally
	dir    string // for binaries and temporary files
	stderr io.Writer
}

// stress runs the tests and prints the table.
func stress(ctx context.Context, o options, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "stress")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	suites, err := compile(ctx, o, dir, stderr)
	if err != nil {
		return err
	}
	c := &campaign{options: o, tally: newTally(o.conditions), dir: dir, stderr: stderr}
	if err := c.clear(suites); err != nil {
		return err
	}
	for _, condition := range o.conditions {
		if err = c.under(ctx, condition, suites); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted: the table is incomplete")
	}
	if err := errors.Join(err, c.tally.write(stdout)); err != nil {
		return err
	}
	switch {
	case len(c.tally.failures) > 0:
		logf(stderr, "the output of the first failures is in %s", o.out)
		return errFailed
	case len(c.tally.runs) == 0:
		return errors.New("no test ran")
	}
	return nil
}

// clear removes the output of earlier failures of these packages.
func (c *campaign) clear(suites []suite) error {
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	for _, s := range suites {
		old, err := filepath.Glob(filepath.Join(c.out, fileName(s.pkg)+"-*.txt"))
		if err != nil {
			return err
		}
		for _, name := range old {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// under runs all packages under a condition.
func (c *campaign) under(ctx context.Context, cond condition, suites []suite) error {
	var limit cgroup
	if cond.quota {
		var err error
		if limit, err = newCgroup(ctx); err != nil {
			c.tally.unavailable[cond.name] = err.Error()
			return nil
		}
		defer limit.remove()
	}
	stop, err := startLoops(ctx, cond.loops)
	if err != nil {
		return err
	}
	defer stop()
	for _, s := range suites {
		logf(c.stderr, "%s: %d runs of %s", cond.name, c.runs, s.pkg)
		hangs := map[string]int{}
		for i := range c.runs {
			if err := c.repeat(ctx, cond, limit, s, i+1, hangs); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeat runs all tests of a package once. If a test ends the binary early, the remaining
// tests run in another process.
func (c *campaign) repeat(ctx context.Context, cond condition, limit cgroup, s suite, number int, hangs map[string]int) error {
	var skip []string
	for name, count := range hangs {
		if count >= hangsEnough {
			skip = append(skip, name)
		}
	}
	for again := true; again; {
		t, end, err := c.execute(ctx, cond, limit, s, skip)
		if err != nil {
			return err
		}
		v := t.judge(end == "")
		for _, name := range c.tally.add(s.pkg, cond.name, v) {
			path := filepath.Join(c.out, fileName(s.pkg)+"-"+fileName(name)+"-"+cond.name+".txt")
			logf(c.stderr, "%s: run %d: %s %s failed: %s", cond.name, number, s.pkg, name, path)
			text := fmt.Sprintf("condition %s, run %d: %s\n\n%s", cond.name, number, end, t.output(name))
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return err
			}
		}
		if end == hung {
			for _, name := range v.failed {
				function, _, _ := strings.Cut(name, "/")
				hangs[function]++
			}
		}
		skip = append(skip, v.functions()...)
		again = v.again
	}
	return nil
}

// fileName replaces characters not allowed in file names.
func fileName(name string) string {
	name = regexp.MustCompile(`[^A-Za-z0-9._=-]+`).ReplaceAllString(name, "_")
	return name[:min(len(name), 100)]
}

// hung is the result of a test binary killed because no test started or ended.
const hung = "hung, and was killed"

// execute runs a test binary in its own process group, without the tests in skip. It
// returns the failure, empty for success.
func (c *campaign) execute(ctx context.Context, cond condition, limit cgroup, s suite, skip []string) (t *transcript, end string, err error) {
	tmp, err := os.MkdirTemp(c.dir, "")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	group, err := startGuarded(ctx, cond.pulse)
	if err != nil {
		return nil, "", err
	}
	defer group.stop()
	cmd := exec.CommandContext(ctx, s.binary, arguments(c.run, skip)...)
	cmd.Dir = s.dir
	cmd.Env = append(append(cmd.Environ(), "TMPDIR="+tmp), cond.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group.number()}
	p, err := start(cmd)
	if err != nil {
		return nil, "", err
	}
	if limit != "" {
		if err = limit.add(cmd.Process.Pid); err != nil {
			_ = cmd.Process.Kill()
		}
	}
	end = p.watch(c.timeout)
	group.stop() // ends children that hold the output open
	t = p.transcript()
	return t, end, errors.Join(err, ctx.Err())
}

// arguments returns the arguments of a test binary. It sets -test.paniconexit0 like go
// test.
func arguments(run string, skip []string) []string {
	args := []string{"-test.v=test2json", "-test.paniconexit0", "-test.count=1", "-test.timeout=0", "-test.run=" + run}
	if len(skip) > 0 {
		args = append(args, "-test.skip=^("+strings.Join(slices.Sorted(slices.Values(skip)), "|")+")$")
	}
	return args
}

// process is a running test binary.
type process struct {
	cmd      *exec.Cmd
	output   *os.File
	exited   chan error    // receives one value
	progress chan struct{} // a test started or ended
	drained  chan *transcript
}

// start starts a test binary and reads its output.
func start(cmd *exec.Cmd) (*process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	p := &process{cmd, reader, make(chan error, 1), make(chan struct{}, 1), make(chan *transcript, 1)}
	go p.read()
	go func() { p.exited <- cmd.Wait() }()
	return p, nil
}

// read reads the output until its end.
func (p *process) read() {
	t := &transcript{}
	for r := bufio.NewReader(p.output); ; {
		text, err := r.ReadString('\n')
		if text != "" && t.add(text) {
			select {
			case p.progress <- struct{}{}:
			default:
			}
		}
		if err != nil {
			p.drained <- t
			return
		}
	}
}

// transcript returns the output after the process has ended.
func (p *process) transcript() *transcript {
	timer := time.AfterFunc(drainTime, func() { _ = p.output.Close() })
	t := <-p.drained
	timer.Stop()
	_ = p.output.Close()
	return t
}

// watch waits until the process ends, or until no test starts or ends within the timeout.
// Then it requests the stacks of all goroutines. It returns the failure, empty for
// success.
func (p *process) watch(timeout time.Duration) string {
	ticker := time.NewTicker(max(timeout/timeoutTicks, time.Millisecond))
	defer ticker.Stop()
	for ticks := 0; ticks < timeoutTicks; {
		select {
		case err := <-p.exited:
			if err != nil {
				return err.Error()
			}
			return ""
		case <-p.progress:
			ticks = 0
		case <-ticker.C:
			ticks++
		}
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.exited:
	case <-time.After(dumpTime):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	return hung
}
