//go:build real

package cli_test

import (
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// TestMain runs the program if the binary is started by its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tacho":      func() { os.Exit(cli.Main(cli.System())) },
		"tacho-view": func() { os.Exit(cli.ShowView()) },
	})
}

// TestRealScripts runs the program as a process: each file of testdata/real is
// a session. $SERVER is a simulated server on loopback.
func TestRealScripts(t *testing.T) {
	// Programs started here must not inherit ignored signals, as under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	server := serve(t)
	params := scripts(t, "testdata/real")
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		e.Setenv("SERVER", "http://"+server)
		e.Values[signaled{}] = new(*exec.Cmd)
		return setup(e)
	}
	maps.Copy(params.Cmds, map[string]func(*testscript.TestScript, bool, []string){
		"interrupt": interrupt, "exited": exited, "gone": gone,
		"measure": measure, "sweep": sweep, "seek": seek, "check": check,
	})
	testscript.Run(t, params)
}

func serve(t *testing.T) string {
	t.Helper()
	s := simulated(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = s.Serve(l) }()
	return l.Addr().String()
}

// interrupt sends a signal to the background command, SIGINT by default:
// interrupt [SIGNAL].
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	sig := os.Interrupt
	if len(args) > 0 {
		sig = signals[args[0]]
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(sig))
		*ts.Value(signaled{}).(**exec.Cmd) = c
	}
}

// exited checks the exit code of the background command: exited CODE.
func exited(ts *testscript.TestScript, _ bool, args []string) {
	c := *ts.Value(signaled{}).(**exec.Cmd)
	if got := strconv.Itoa(c.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// gone waits until the process whose id is in a file has exited.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	pid := strings.TrimSpace(ts.ReadFile(args[0]))
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		if state := strings.TrimSpace(string(out)); err != nil || state == "" || strings.HasPrefix(state, "Z") {
			return
		}
	}
	ts.Fatalf("process %s is still there", pid)
}

// signaled is the key under which a script stores the last signaled command.
type signaled struct{}

// measure runs tacho bench, sweep runs tacho sweep and seek runs tacho find;
// all accept the verdict INVALID, and seek an undecided search. check runs tacho selfcheck and accepts failed
// checks. These results depend on the load of this machine.
var (
	measure = tolerant("bench", 4)
	sweep   = tolerant("sweep", 4)
	seek    = tolerant("find", 4, 6)
	check   = tolerant("selfcheck", 1)
)

// tolerant runs a command and accepts some exit codes besides 0.
func tolerant(command string, codes ...int) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		var exit *exec.ExitError
		if err := ts.Exec("tacho", append([]string{command}, args...)...); err != nil && (!errors.As(err, &exit) || !slices.Contains(codes, exit.ExitCode())) {
			ts.Fatalf("tacho %s: %v", command, err)
		}
	}
}
