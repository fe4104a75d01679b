package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tacho-bench/tacho/internal/must"
)

// unreachable is an address without a listener. Unlike a port that was just closed,
// no other test can use it.
const unreachable = "http://127.0.0.1:1"

// scripts returns the parameters for the scripts of a directory.
func scripts(t *testing.T, dir string) testscript.Params {
	t.Helper()
	seeds := must.Get(filepath.Abs("../../testdata/seeds"))(t)
	dir = must.Get(filepath.Abs(dir))(t)
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("CLOSED", unreachable)
			e.Setenv("SEEDS", seeds)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return raced, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"conforms": conforms, "damage": damage, "glob": glob, "same": same, "rows": rows, "waitfor": waitFor,
		},
	}
}

// same checks that two files contain the same line: same WORDS FILE FILE.
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

// rows checks the number of rows in a Parquet file: rows FILE N.
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

// damage removes a part of the first line of a file: damage FILE.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(b[:40:40], b[60:]...), 0o600))
}

// glob sets a variable to the only matching file: glob NAME PATTERN.
func glob(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s: %d files", args[1], len(files))
	}
	ts.Setenv(args[0], files[0])
}

// signals are the signals available to scripts.
var signals = map[string]os.Signal{"int": os.Interrupt, "kill": os.Kill, "term": syscall.SIGTERM, "hup": syscall.SIGHUP}

// waitFor waits until a matching file has at least this many lines.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	var lines int
	_, err := fmt.Sscan(args[1], &lines)
	ts.Check(err)
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
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
