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

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

const (
	// asTacho makes the test binary run as tacho, and names the file for its memory usage. Each trial runs in its
	// own process.
	asTacho = "HOSTILE_AS_TACHO"
	// maxMemory is the allowed memory of a process, in bytes. The race detector multiplies memory usage.
	maxMemory = 300 << 20
	// trialTimeout is the time after which a trial is considered hung, far longer than any trial takes.
	trialTimeout = 2 * time.Minute
)

func TestMain(m *testing.M) {
	if file := os.Getenv(asTacho); file != "" {
		code := cli.Main(cli.System())
		// The rusage of a child includes the memory of its parent, so the child reads its own status.
		status, _ := os.ReadFile("/proc/self/status")
		if err := os.WriteFile(file, status, 0o600); err != nil {
			panic(err)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// peak returns the peak memory of a process as reported by Linux, or 0 if unknown.
func peak(file string) int64 {
	status, _ := os.ReadFile(file)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(after, &kilobytes)
	return kilobytes << 10
}

// outside runs the trial in a separate process over the kernel's network. memory is the peak memory of the process.
func (tr *trial) outside(t testing.TB) (o outcome, memory int64) {
	t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := newProxy(t, ln, tr)
	defer p.close()
	dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // thousands of runs: remove each one immediately
	must.Do(t, err)
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), trialTimeout)
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

// allOutside runs trials in parallel, because most of them only wait.
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
				if memory > maxMemory && !raceEnabled {
					t.Errorf("%s: held %d MB, want at most %d", tr, memory>>20, int64(maxMemory)>>20)
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

// Over the kernel's network, bad responses lead to the same causes, and memory stays bounded.
func TestRealShapes(t *testing.T) { allOutside(t, shapeTrials(t)) }

// Bad responses to queries before the run also do no harm over the kernel's network.
func TestRealQueries(t *testing.T) { allOutside(t, queryTrials()) }
