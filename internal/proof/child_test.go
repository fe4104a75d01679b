package proof

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
)

// roleVar selects a role for the test binary instead of running tests.
//
// hermetic: only benchmarks and tests of the real tier start processes.
const roleVar = "TACHO_PROOF_ROLE"

// roles are the available roles. A role communicates by lines on its standard
// streams and exits when its standard input is closed.
var roles = map[string]func(args []string) error{"server": serve, "client": client, "engine": engineServer}

func TestMain(m *testing.M) {
	role, args, _ := strings.Cut(os.Getenv(roleVar), " ")
	if role == "" {
		code := m.Run()
		_ = os.RemoveAll(buildDir) // missing if nothing was built
		os.Exit(code)
	}
	do := roles[role]
	if do == nil {
		do = platformRoles[role]
	}
	if err := do(strings.Fields(args)); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// serve is the role of the recording server. args are time to first token and
// time between tokens.
func serve(args []string) error {
	runtime.GOMAXPROCS(1)
	var opt sim.Options
	var err error
	if opt.TTFT, err = time.ParseDuration(args[0]); err != nil {
		return err
	}
	if opt.ITL, err = time.ParseDuration(args[1]); err != nil {
		return err
	}
	s, err := sim.New(opt)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go s.Serve(l)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

// A child is a process in a role.
type child struct {
	b     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

func start(b testing.TB, role string, args ...string) *child {
	b.Helper()
	c := &child{b: b, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVar+"="+role+" "+strings.Join(args, " "))
	c.cmd.Stderr = os.Stderr
	c.stdin = must.Get(c.cmd.StdinPipe())(b)
	out := must.Get(c.cmd.StdoutPipe())(b)
	c.out = bufio.NewReader(out)
	must.Do(b, c.cmd.Start())
	b.Cleanup(c.stop)
	return c
}

// line returns the next line printed by the child.
func (c *child) line() string {
	c.b.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		c.b.Fatalf("child: %v", err)
	}
	return strings.TrimSpace(s)
}

// stop ends the child and fails the test if the child failed.
func (c *child) stop() {
	_ = c.stdin.Close()
	var failed *exec.ExitError
	if err := c.cmd.Wait(); errors.As(err, &failed) && failed.Exited() {
		c.b.Errorf("%s: %v", c.cmd.Env[len(c.cmd.Env)-1], err)
	}
}

// cpuSeconds returns the CPU time used by this process.
func cpuSeconds() float64 {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
}

// residentKiB returns the resident memory of this process.
func residentKiB() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(b))[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize()) / 1024
}
