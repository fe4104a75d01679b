//go:build real

package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tacho/cli"
)

const (
	// asTacho makes the test binary tacho, and names a file for its memory: each
	// trial has a process of its own.
	asTacho = "HOSTILE_AS_TACHO"
	// mostMemory is what a process may hold, in bytes. The race detector keeps
	// several bytes for each of the program's.
	mostMemory = 300 << 20
	// patience is how long a trial may take before it hangs: far longer than any.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) {
	if file := os.Getenv(asTacho); file != "" {
		code := cli.Main(cli.System())
		// The kernel's own word on a child counts what its parent held, too.
		status, _ := os.ReadFile("/proc/self/status")
		if err := os.WriteFile(file, status, 0o600); err != nil {
			panic(err)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// peak is the most memory that a process held, by what Linux said of it; 0 where
// it says nothing.
func peak(file string) int64 {
	status, _ := os.ReadFile(file)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(after, &kilobytes)
	return kilobytes << 10
}

// outside has a process of its own measure the proxy over the kernel's network. memory
// is the most that the process held.
func (tr *trial) outside(t testing.TB) (o outcome, memory int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, ln, tr)
	defer p.close()
	dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // each of thousands of runs is removed at once
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], tr.args("http://"+ln.Addr().String(), dir)...)
	cmd.Env = append(os.Environ(), asTacho+"="+filepath.Join(dir, "status"), "OPENAI_API_KEY=sk-"+secret)
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: hangs: %v\n%.2000s", tr, err, &output)
	}
	o = outcome{output: output.String(), code: cmd.ProcessState.ExitCode()}
	o.read(t, tr, dir)
	return o, peak(filepath.Join(dir, "status"))
}

// allOutside makes trials side by side: most of them wait.
func allOutside(t *testing.T, trials []trial) {
	t.Helper()
	var mu sync.Mutex
	var most int64
	var worst string
	todo := make(chan *trial)
	var workers sync.WaitGroup
	begun := time.Now()
	for range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for tr := range todo {
				o, memory := tr.outside(t)
				tr.check(t, o)
				if memory > mostMemory && !raceEnabled {
					t.Errorf("%s: held %d MB, want at most %d", tr, memory>>20, int64(mostMemory)>>20)
				}
				mu.Lock()
				if memory > most {
					most, worst = memory, tr.String()
				}
				mu.Unlock()
			}
		})
	}
	for i := range trials {
		todo <- &trials[i]
	}
	close(todo)
	workers.Wait()
	t.Logf("%d trials in %v; at most %d MB held, by %s", len(trials), time.Since(begun).Round(time.Second), most>>20, worst)
}

// Over the kernel's network bad answers have the same causes, and no process holds
// much memory.
func TestRealShapes(t *testing.T) { allOutside(t, shapeTrials(t)) }

// The same for answers to the questions before the run.
func TestRealQuestions(t *testing.T) { allOutside(t, questionTrials()) }
