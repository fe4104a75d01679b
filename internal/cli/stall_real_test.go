//go:build real && unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report"
)

// A client stopped for two seconds never gets a VALID verdict under any load,
// and the reason names the stall. The server keeps answering. If all requests
// were sent before the stop, times can still be correct. The stored run gets
// the same verdict.
func TestRealStoppedClientIsNotValid(t *testing.T) {
	for name, c := range map[string]struct {
		load string
		may  []metric.Severity
	}{
		"closed loop": {"--max-concurrency 4 --num-prompts 12", []metric.Severity{metric.Invalid}},
		"open loop":   {"--request-rate 5 --num-prompts 12", []metric.Severity{metric.Invalid}},
		"burst":       {"--num-prompts 12", []metric.Severity{metric.Invalid, metric.Degraded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := holdAnswers(t), t.TempDir()
			args := strings.Fields("bench --no-trial --tokenizer gpt-4o --random-input-len 64 --random-output-len 2 --seed 1 --base-url " + server.URL + " --runs-dir " + dir + " " + c.load)
			cmd := exec.CommandContext(t.Context(), "tacho", args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals for this process must not continue the client
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			must.Do(t, cmd.Start())
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			select {
			case <-server.asked: // the level has started and lasts until the server answers
			case err := <-over:
				t.Fatalf("the run ended without a request: %v\n%s", err, stderr.String())
			}
			stopFor(t, cmd.Process, 2*time.Second, server.answer)
			<-over // the exit code depends on the verdict
			if text := stdout.String(); !strings.Contains(text, "client-stall: the client was not scheduled for ") {
				t.Errorf("stopped for 2 s:\n%s%s", text, stderr.String())
			}
			checkKept(t, dir, c.may)
		})
	}
}

// stopFor stops a process for at least a given time and calls a function
// meanwhile.
func stopFor(t *testing.T, p *os.Process, least time.Duration, meanwhile func()) {
	t.Helper()
	must.Do(t, p.Signal(syscall.SIGSTOP))
	state := func() string {
		out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(p.Pid)).Output()
		return string(out)
	}
	until(t, state, func() bool { return strings.HasPrefix(state(), "T") })
	meanwhile()
	time.Sleep(least)
	must.Do(t, p.Signal(syscall.SIGCONT))
}

// checkKept computes the verdict of a stored run again.
func checkKept(t *testing.T, dir string, may []metric.Severity) {
	t.Helper()
	runs, _ := filepath.Glob(filepath.Join(dir, "*"))
	out := must.Get(exec.Command("tacho", append([]string{"report", "--format", "json"}, runs...)...).Output())(t)
	var kept report.Report
	must.Do(t, json.Unmarshal(out, &kept))
	for _, l := range kept.Runs[0].Levels {
		for _, r := range l.Summary.Verdict.Reasons {
			if r.Code == "client-stall" && slices.Contains(may, l.Summary.Verdict.Severity) {
				return
			}
		}
	}
	t.Errorf("the kept run says nothing of the stall: %.2000s", out)
}
