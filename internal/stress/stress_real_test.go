//go:build real && unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// build compiles this program, because it starts itself as a helper.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "stress")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func TestRealFailuresOfEveryKind(t *testing.T) {
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), build(t), "-n", "1", "-cond", "quiet,busy,one-proc,crowded,pulse", "-timeout", "5s", "-out", out, "./testdata/tiny")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want exit status 1\n%s", err, stderr.String())
	}
	const want = `Failures/runs:

| package | test | quiet | busy | one-proc | crowded | pulse |
|---|---|---|---|---|---|---|
| internal/stress/testdata/tiny | TestFails/fails | 1/1 | 1/1 | 1/1 | 1/1 | 1/1 |
| internal/stress/testdata/tiny | TestHangs | 1/1 | 1/1 | 1/1 | 1/1 | 1/1 |
| internal/stress/testdata/tiny | TestPanics | 1/1 | 1/1 | 1/1 | 1/1 | 1/1 |

Tests that never failed: 2.
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("(-want +got)\n%s%s", diff, stderr.String())
	}
	for file, want := range map[string]string{
		"TestFails_fails-quiet": "this subtest fails",
		"TestPanics-crowded":    "this test panics",
		"TestHangs-pulse":       "tiny.TestHangs(", // a line of the stack
	} {
		text, err := os.ReadFile(filepath.Join(out, "internal_stress_testdata_tiny-"+file+".txt"))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want %q in\n%s", file, err, want, text)
		}
	}
}

func TestRealSuccess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), build(t), "-n", "2", "-cond", "quiet", "-run", "^TestPasses", "-out", t.TempDir(), "./testdata/tiny")
	cmd.Stderr = t.Output()
	got, err := cmd.Output()
	if want := "Tests that never failed: 2.\n"; err != nil || string(got) != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

// TestRealKilledProgramLeavesNoProcess checks that all processes started by the program
// end when it is killed, including stopped ones.
func TestRealKilledProgramLeavesNoProcess(t *testing.T) {
	program := build(t)
	for _, c := range []struct{ condition, state string }{
		{"pulse", "T"}, // stopped
		{"busy", "S"},  // sleeping
	} {
		t.Run(c.condition, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			helpers, writer, err := os.Pipe() // the standard error of the program and its helpers
			if err != nil {
				t.Fatal(err)
			}
			defer helpers.Close()
			cmd := exec.CommandContext(t.Context(), program, "-cond", c.condition, "-run", "^TestHangs$", "-out", t.TempDir(), "./testdata/tiny")
			cmd.Env = append(cmd.Environ(), "FIFO="+fifo, "TMPDIR="+t.TempDir())
			cmd.Stderr = writer
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = writer.Close()
			file, err := os.Open(fifo) // waits for the test
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			tests := bufio.NewReader(file)
			pid, err := tests.ReadString('\n') // waits for the child of the test
			if err != nil {
				t.Fatal(err)
			}
			waitForState(t, strings.TrimSpace(pid), c.state)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if _, err := io.Copy(io.Discard, tests); err != nil { // returns when the test and its child have ended
				t.Error(err)
			}
			if _, err := io.Copy(io.Discard, helpers); err != nil { // returns when all helpers have ended
				t.Error(err)
			}
		})
	}
}

// waitForState waits until ps shows a process in the given state.
func waitForState(t *testing.T, pid, state string) {
	t.Helper()
	for {
		out, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", pid).Output()
		if err != nil {
			t.Fatalf("ps -p %s: %v", pid, err)
		}
		if strings.HasPrefix(string(out), state) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
