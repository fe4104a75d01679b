package cli_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"tacho/cli"
	"tacho/sim"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tacho":      func() { os.Exit(cli.Main(cli.System())) },
		"tacho-view": func() { os.Exit(cli.ShowView()) },
	})
}

// nobody is where nobody listens, and no other test may come to: that is not so of a
// port that was just closed.
const nobody = "http://127.0.0.1:1"

// TestScripts runs the program as a user does: each file of testdata/script is
// a session. $SERVER is a simulated server, $NOBODY an address where nobody
// listens, $SEEDS the reports the project grew from.
func TestScripts(t *testing.T) {
	// Programs started here must not inherit that a signal is ignored, as under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	seeds, err := filepath.Abs("../testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SERVER", "http://"+server)
			e.Setenv("NOBODY", nobody)
			e.Setenv("SEEDS", seeds)
			e.Values[signaled{}] = new(*exec.Cmd)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return raced, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"interrupt": interrupt, "exited": exited, "conforms": conforms, "damage": damage, "waitfor": waitFor, "glob": glob, "measure": measure, "sweep": sweep, "seek": seek, "check": check, "same": same, "gone": gone, "rows": rows},
	})
}

func serve(t *testing.T) string {
	t.Helper()
	s, err := sim.New(sim.Options{TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// waitFor waits until a file that matches has at least so many lines.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	var lines int
	_, err := fmt.Sscan(args[1], &lines)
	ts.Check(err)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, f := range files {
			b, err := os.ReadFile(f)
			ts.Check(err)
			n := 0
			for _, c := range b {
				if c == '\n' {
					n++
				}
			}
			if n >= lines {
				return
			}
		}
	}
	ts.Fatalf("no file %s with %s lines", args[0], args[1])
}

// interrupt sends a signal to the background command, Ctrl-C's unless another
// is named: interrupt [SIGNAL].
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	sig := os.Interrupt
	if len(args) > 0 {
		sig = map[string]os.Signal{"kill": os.Kill, "term": syscall.SIGTERM, "hup": syscall.SIGHUP}[args[0]]
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(sig))
		*ts.Value(signaled{}).(**exec.Cmd) = c
	}
}

// signaled is where a script keeps the command that had the last signal.
type signaled struct{}

// exited checks what that command exited with: exited CODE.
func exited(ts *testscript.TestScript, _ bool, args []string) {
	c := *ts.Value(signaled{}).(**exec.Cmd)
	if got := strconv.Itoa(c.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// measure runs tacho bench, sweep runs tacho sweep and seek runs tacho find; all take
// a verdict of INVALID for success. check runs tacho selfcheck, and takes checks that
// failed for it. How they end depends on how busy this machine is.
var (
	measure = tolerant("bench", 4)
	sweep   = tolerant("sweep", 4)
	seek    = tolerant("find", 4)
	check   = tolerant("selfcheck", 1)
)

// tolerant runs a command, and takes one exit code besides 0.
func tolerant(command string, code int) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		var exit *exec.ExitError
		if err := ts.Exec("tacho", append([]string{command}, args...)...); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != code) {
			ts.Fatalf("tacho %s: %v", command, err)
		}
	}
}

// same wants a line of two files to be there and alike: same WORDS FILE FILE.
func same(ts *testscript.TestScript, _ bool, args []string) {
	var found [2]string
	for i := range found {
		for line := range strings.Lines(ts.ReadFile(args[1+i])) {
			if strings.Contains(line, args[0]) {
				found[i] = line
			}
		}
	}
	if found[0] == "" || found[0] != found[1] {
		ts.Fatalf("%q is not %q", found[0], found[1])
	}
}

// rows wants so many rows in a Parquet file: rows FILE N.
func rows(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	f, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		ts.Fatalf("%v", err)
	}
	if got := strconv.FormatInt(f.NumRows(), 10); got != args[1] {
		ts.Fatalf("%s rows, want %s", got, args[1])
	}
}

// damage cuts a piece out of the first line of a file: damage FILE.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(b[:40:40], b[60:]...), 0o600))
}

// glob sets a variable to the one file that matches: glob NAME PATTERN.
func glob(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s: %d files", args[1], len(files))
	}
	ts.Setenv(args[0], files[0])
}

// gone waits until the process whose number is in a file is no more.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	pid := strings.TrimSpace(ts.ReadFile(args[0]))
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		if state := strings.TrimSpace(string(out)); err != nil || state == "" || strings.HasPrefix(state, "Z") {
			return
		}
	}
	ts.Fatalf("process %s is still there", pid)
}
