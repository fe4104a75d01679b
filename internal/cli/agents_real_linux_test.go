//go:build real

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
)

// A gatedServer is a simulator that answers a given number of requests in the
// order of their numbers. Other requests wait.
type gatedServer struct {
	*sim.Server
	url string

	mu      sync.Mutex
	below   int
	changed chan struct{} // closed when below changes
	waiting int           // number of requests
}

func newGatedServer(t *testing.T) *gatedServer {
	t.Helper()
	s := must.Get(sim.New(sim.Options{}))(t)
	g := &gatedServer{Server: s, changed: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // net/http detects a closed connection only after the body was read
		r.Body = io.NopCloser(bytes.NewReader(body))
		n, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("X-Request-Id"), "r-"))
		if err != nil || g.pass(r.Context(), n) {
			s.ServeHTTP(w, r)
		}
	}))
	g.url = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		_ = s.Close()
	})
	return g
}

// pass waits until a request may be answered. It returns false if the client
// closes the connection.
func (g *gatedServer) pass(ctx context.Context, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	defer func() { g.waiting-- }()
	for n >= g.below && ctx.Err() == nil {
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
	return ctx.Err() == nil
}

// awaitWaiting waits until n requests are waiting.
func (g *gatedServer) awaitWaiting(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.waiting
	}
	until(t, func() string { return strconv.Itoa(count()) + " requests wait" }, func() bool { return count() == n })
}

// answer releases the first n requests.
func (g *gatedServer) answer(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.below = n
	close(g.changed)
	g.changed = make(chan struct{})
}

// childOf returns the child of a process with the given words in its command
// line.
func childOf(t *testing.T, parent int, words ...string) int {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/stat"))(t)
	for _, file := range files {
		stat, _ := os.ReadFile(file) // may have exited
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) || !strings.Contains(string(line), strings.Join(words, "\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			return pid
		}
	}
	t.Fatalf("process %d has no child with %v", parent, words)
	return 0
}

// A local agent is killed while sending. Its finished requests are stored
// exactly once, compared with the simulator's log, and its share is reported or
// reassigned. Some records were delivered before the kill; the rest was in the
// spool, because the coordinator was stopped.
func TestRealKilledAgent(t *testing.T) {
	const handedOver, finished, all = 40, 80, 160
	for onLoss, want := range map[string]int{"keep": all - (all-finished)/2, "reassign": all} {
		t.Run(onLoss, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := newGatedServer(t)
			cmd := exec.CommandContext(t.Context(), "tacho", strings.Fields("bench --agents 2 --local --num-prompts "+strconv.Itoa(all)+
				" --random-input-len 20 --random-output-len 10 --seed 1 --request-id-prefix r- --no-trial --no-html --agent-timeout 300 --on-loss "+
				onLoss+" --base-url "+server.url+" --runs-dir "+filepath.Join(dir, "runs"))...)
			cmd.Env = append(os.Environ(), "TMPDIR="+dir) // location of the spools
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			must.Do(t, cmd.Start())
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			records, spools := filepath.Join(dir, "runs", "*", "records.jsonl"), filepath.Join(dir, "tacho-agents*", "*", "*", "*.jsonl")
			server.answer(handedOver)
			awaitRecords(t, records, handedOver, over, &stderr)
			agent := childOf(t, cmd.Process.Pid, "--name", "local-2")
			signalTo(t, cmd.Process.Pid, syscall.SIGSTOP)
			server.answer(finished)
			awaitRecords(t, spools, finished, over, &stderr)
			server.awaitWaiting(t, all-finished)
			signalTo(t, agent, syscall.SIGKILL)
			server.awaitWaiting(t, (all-finished)/2)
			signalTo(t, cmd.Process.Pid, syscall.SIGCONT)
			server.answer(all)
			<-over // the exit code depends on the verdict
			if !strings.Contains(stdout.String(), "agent-lost: agent local-2 (share 2 of 2) was lost") {
				t.Errorf("the report says nothing of it:\n%s%s", stdout.String(), stderr.String())
			}
			checkRecords(t, keptIDs(records), server.Truth(), want)
		})
	}
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	must.Do(t, syscall.Kill(pid, s))
}

// keptIDs counts the stored records by request id.
func keptIDs(pattern string) map[string]int {
	ids := map[string]int{}
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		text, _ := os.ReadFile(file) // may not exist
		for line := range bytes.Lines(text) {
			var r struct{ ID string }
			if json.Unmarshal(line, &r) == nil { // a line without a newline is still being written
				ids[r.ID]++
			}
		}
	}
	return ids
}

// awaitRecords waits until n requests are stored.
func awaitRecords(t *testing.T, pattern string, n int, over <-chan error, stderr *bytes.Buffer) {
	t.Helper()
	until(t, func() string { return strconv.Itoa(len(keptIDs(pattern))) + " records" }, func() bool {
		select {
		case err := <-over:
			t.Fatalf("the run ended before %d requests were kept: %v\n%s", n, err, stderr.String())
		default:
		}
		return len(keptIDs(pattern)) >= n
	})
}

// checkRecords checks that every answered request is stored exactly once.
func checkRecords(t *testing.T, kept map[string]int, truth []sim.Truth, want int) {
	t.Helper()
	known := map[string]bool{}
	for _, a := range truth {
		known[a.ID] = true
		if a.Finish != "" && kept[a.ID] == 0 {
			t.Errorf("%s was answered to its end, and is not kept", a.ID)
		}
	}
	for id, n := range kept {
		if n != 1 || !known[id] {
			t.Errorf("%s is kept %d times, and the server knows of it: %v", id, n, known[id])
		}
	}
	if len(kept) != want {
		t.Errorf("%d requests are kept, want %d", len(kept), want)
	}
}
