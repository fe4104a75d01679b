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
			cmd := exec.Command("tacho", strings.Fields("bench --agents 2 --local --num-prompts 160 --request-rate 40 --random-input-len 20 --random-output-len 10 --seed 1 --request-id-prefix r- --no-html --agent-timeout 60 --on-loss "+
				onLoss+" --base-url "+url+" --runs-dir "+runs)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+dir) // where the spools are
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			awaitRecords(t, filepath.Join(runs, "*", "records.jsonl"), "local-2", 15, over, &stderr)
			pid := childOf(t, cmd.Process.Pid, "--name", "local-2")
			finished := kill(t, pid, filepath.Join(dir, "tacho-agents*", "local-2", "*", "*.jsonl"))
			<-over // the exit code is the verdict's
			if !strings.Contains(stdout.String(), "agent-lost: agent local-2 (share 2 of 2) was lost") {
				t.Errorf("the report says nothing of it:\n%s%s", stdout.String(), stderr.String())
			}
			checkRecords(t, filepath.Join(runs, "*", "records.jsonl"), truth, finished, onLoss == "reassign")
		})
	}
}

// kill ends an agent as nobody would wish to end, and says what it had finished by then:
// it is stopped first, so that its spool can be read.
func kill(t *testing.T, pid int, spool string) (finished []string) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	finished = recordsOf(spool, "")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if len(finished) < 15 {
		t.Errorf("only %d records are in its spool, and more were kept of it", len(finished))
	}
	return finished
}

// A keptRecord is what these tests look at in a record.
type keptRecord struct{ ID, Agent string }

// recordsOf are the records below a directory so far, by the name of their agent.
func recordsOf(pattern, agent string) (ids []string) {
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may be gone
		for line := range bytes.Lines(text) {
			var r keptRecord
			if json.Unmarshal(line, &r) == nil && r.Agent == agent { // what has no end is being written
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

// awaitRecords waits until some requests of an agent are on record.
func awaitRecords(t *testing.T, pattern, agent string, n int, over <-chan error, stderr *bytes.Buffer) {
	t.Helper()
	for len(recordsOf(pattern, agent)) < n {
		select {
		case err := <-over:
			t.Fatalf("the run was over before %d requests of %s were kept: %v\n%s", n, agent, err, stderr.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// checkRecords holds what is kept against the truth. Of the second agent, which has every
// other request and was killed, that has to be kept which it had finished.
func checkRecords(t *testing.T, records, truth string, finished []string, all bool) {
	t.Helper()
	kept := map[string]int{}
	for _, r := range linesOf[keptRecord](t, records) {
		kept[r.ID]++
	}
	for _, id := range finished {
		if kept[id] == 0 {
			t.Errorf("the agent had finished %s, and it is not kept", id)
		}
	}
	known := map[string]bool{}
	for _, a := range linesOf[answered](t, truth) {
		known[a.ID] = true
		n, err := strconv.Atoi(strings.TrimPrefix(a.ID, "r-"))
		if err == nil && n%2 == 0 && a.Finish != "" && kept[a.ID] == 0 {
			t.Errorf("the other agent's %s was answered to its end, and is not kept", a.ID)
		}
	}
	for id, n := range kept {
		if n != 1 || !known[id] {
			t.Errorf("%s is kept %d times, and the server knows of it: %v", id, n, known[id])
		}
	}
	if want := 160; all && len(kept) != want || !all && (len(kept) >= want || len(kept) < want/2+len(finished)) {
		t.Errorf("%d of %d requests are kept; the agent that was killed had finished %d", len(kept), want, len(finished))
	}
}
