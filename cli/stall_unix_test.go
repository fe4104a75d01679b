//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tacho/metric"
	"tacho/report"
)

// A client that is stopped for two seconds never gets away with it, whatever
// the load, and the reason names the stall. The server goes on meanwhile: it is
// a process of its own. Where all had been sent by then, the times can still be
// right. A kept run is judged the same.
func TestStoppedClientIsNotValid(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some ten seconds of real time")
	}
	for name, c := range map[string]struct {
		load string
		may  []metric.Severity
	}{
		"closed loop": {"--max-concurrency 4 --max-seconds 4", []metric.Severity{metric.Invalid}},
		"open loop":   {"--request-rate 5 --max-seconds 4", []metric.Severity{metric.Invalid}},
		"burst":       {"--num-prompts 60", []metric.Severity{metric.Invalid, metric.Degraded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := strings.Fields("bench --sim vllm-8b-h100 --random-input-len 64 --random-output-len 128 --seed 1 --runs-dir " + dir + " " + c.load)
			cmd := exec.Command("tacho", args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			awaitStage(t, dir, over, &stderr)
			time.Sleep(200 * time.Millisecond)
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			<-over // the exit code is the verdict's
			if text := stdout.String(); !strings.Contains(text, "client-stall: the client did not run for ") {
				t.Errorf("stopped for 2 s:\n%s%s", text, stderr.String())
			}
			checkKept(t, dir, c.may)
		})
	}
}

// awaitStage waits until a level has begun.
func awaitStage(t *testing.T, dir string, over <-chan error, stderr *bytes.Buffer) {
	t.Helper()
	for {
		if files, _ := filepath.Glob(filepath.Join(dir, "*", "stages*")); len(files) > 0 {
			if info, err := os.Stat(files[0]); err == nil && info.Size() > 0 { // a level's line is written when it begins
				return
			}
		}
		select {
		case err := <-over:
			t.Fatalf("the run was over before it began: %v\n%s", err, stderr.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// checkKept judges a run again from what was kept of it.
func checkKept(t *testing.T, dir string, may []metric.Severity) {
	t.Helper()
	runs, _ := filepath.Glob(filepath.Join(dir, "*"))
	out, err := exec.Command("tacho", append([]string{"report", "--format", "json"}, runs...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var kept report.Report
	if err := json.Unmarshal(out, &kept); err != nil {
		t.Fatal(err)
	}
	for _, l := range kept.Runs[0].Levels {
		for _, r := range l.Summary.Verdict.Reasons {
			if r.Code == "client-stall" && slices.Contains(may, l.Summary.Verdict.Severity) {
				return
			}
		}
	}
	t.Errorf("the kept run says nothing of the stall: %.2000s", out)
}
