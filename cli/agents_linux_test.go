package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// answered is what the simulator knows of a request.
type answered struct {
	ID     string `json:"id"`
	Finish string `json:"finish"`
	End    int64  `json:"end"` // in nanoseconds since 1970
}

// linesOf reads a file of JSON lines.
func linesOf[T any](t *testing.T, pattern string) (out []T) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// startTruth starts a simulator that writes down the truth.
func startTruth(t *testing.T, file string) (url string) {
	t.Helper()
	cmd := exec.Command("tacho", "sim", "--port", "0", "--ttft", "50ms", "--itl", "5ms", "--truth", file, "--child")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stdin.Close(), cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`http://\S+`).FindString(line)
}

// childOf is the child of a process that has some words in its command line.
func childOf(t *testing.T, parent int, words ...string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stat, _ := os.ReadFile(file) // it may be gone
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

// A local agent is killed while it sends: what it had finished is kept, once, by
// the simulator's own log; its share is named, or taken over.
func TestKilledAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some ten seconds of real time")
	}
	for _, onLoss := range []string{"keep", "reassign"} {
		t.Run(onLoss, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			truth := filepath.Join(dir, "truth.jsonl")
			runs := filepath.Join(dir, "runs")
			url := startTruth(t, truth)
			cmd := exec.Command("tacho", strings.Fields("bench --agents 2 --local --num-prompts 160 --request-rate 40 --random-input-len 20 --random-output-len 10 --seed 1 --request-id-prefix r- --no-html --on-loss "+
				onLoss+" --base-url "+url+" --runs-dir "+runs)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			awaitStage(t, runs, over, &stderr)
			time.Sleep(1500 * time.Millisecond)
			killed := time.Now()
			if err := syscall.Kill(childOf(t, cmd.Process.Pid, "--name", "local-2"), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-over // the exit code is the verdict's
			if !strings.Contains(stdout.String(), "agent-lost: agent local-2 (share 2 of 2) was lost") {
				t.Errorf("the report says nothing of it:\n%s%s", stdout.String(), stderr.String())
			}
			checkRecords(t, filepath.Join(runs, "*", "records.jsonl"), truth, killed, onLoss == "reassign")
		})
	}
}

// checkRecords holds what is kept against the truth.
func checkRecords(t *testing.T, records, truth string, killed time.Time, all bool) {
	t.Helper()
	kept := map[string]int{}
	for _, r := range linesOf[struct{ ID string }](t, records) {
		kept[r.ID]++
	}
	known, lost := map[string]bool{}, 0
	for _, a := range linesOf[answered](t, truth) {
		known[a.ID] = true
		// The last bytes of some answers may have been on their way when the agent died.
		then := time.Unix(0, a.End).Sub(killed).Abs() < 250*time.Millisecond
		if a.Finish != "" && kept[a.ID] == 0 && !strings.Contains(a.ID, "trial") && !then {
			lost++
		}
	}
	for id, n := range kept {
		if n != 1 || !known[id] {
			t.Errorf("%s is kept %d times, and the server knows of it: %v", id, n, known[id])
		}
	}
	if lost > 0 {
		t.Errorf("%d requests were answered to their end, and are not kept", lost)
	}
	if want := 160; all && len(kept) != want || !all && (len(kept) >= want || len(kept) <= want/2) {
		t.Errorf("%d of %d requests are kept", len(kept), want)
	}
}
