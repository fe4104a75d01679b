//go:build engines && linux

package backend_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// llamaServe is llama.cpp's server as a command: a model, a port, and how many
// requests it serves at once. It has a process of its own, as larger engines do.
const llamaServe = `
import subprocess, sys, threading, xllamacpp
subprocess.Popen(["sleep", "1000"])
p = xllamacpp.CommonParams()
p.model.path, p.model_alias, p.port, p.n_parallel = sys.argv[1], ["tiny"], int(sys.argv[2]), int(sys.argv[3])
p.n_ctx, p.warmup, p.fit_params = 512 * p.n_parallel, False, False
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(p)
print("listening on", server.listening_address, flush=True)
threading.Event().wait()
`

// A sweep over the settings of a real server leaves no process behind: when all
// is well, when a setting fails, on Ctrl-C, and when tacho itself is killed.
func TestEngineSweepLlamaCPP(t *testing.T) {
	script := filepath.Join(t.TempDir(), "serve.py")
	if err := os.WriteFile(script, []byte(llamaServe), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &engineSweep{
		binary: command(t), param: "parallel",
		serve: installed(t, "engines", llamaPackage) + " " + script + " " + tinyModel(t) + " {port} {parallel}",
	}
	s.succeeds(t, "1,2")
	s.fails(t, "1,many", "ValueError")
	s.isStopped(t, "1", os.Interrupt)
	s.isStopped(t, "1", os.Kill)
}

// An engineSweep is what all sweeps of one server have in common.
type engineSweep struct {
	binary, serve, param string
	env                  []string
}

// start begins a sweep. All its processes carry a mark in their environment.
func (s *engineSweep) start(t *testing.T, values, prompts string) (cmd *exec.Cmd, said *strings.Builder, mark, runs string) {
	t.Helper()
	mark, runs, said = "TACHO_SWEEP_TEST="+t.TempDir(), t.TempDir(), &strings.Builder{}
	cmd = exec.CommandContext(t.Context(), s.binary, "sweep", "--serve-cmd", s.serve, "--serve-param", s.param+"="+values, "--",
		"--model", "tiny", "--num-prompts", prompts, "--max-concurrency", "2", "--random-input-len", "16", "--random-output-len", "8",
		"--runs-dir", runs, "--label", "sweep", "--disable-tqdm")
	cmd.Env = append(append(os.Environ(), s.env...), mark)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said, mark, runs
}

// marked are the processes that carry a mark.
func marked(mark string) (out []string) {
	places, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, place := range places {
		if env, err := os.ReadFile(place); err == nil && strings.Contains(string(env), mark) {
			words, _ := os.ReadFile(filepath.Join(filepath.Dir(place), "cmdline"))
			out = append(out, strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return out
}

// gone fails where processes of a sweep are left; those that were just killed
// have a moment to end.
func gone(t *testing.T, when, mark string) {
	t.Helper()
	left := marked(mark)
	for deadline := time.Now().Add(30 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = marked(mark) {
		<-time.After(50 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("%s: these are left behind: %q", when, left)
	}
}

func (s *engineSweep) succeeds(t *testing.T, values string) {
	t.Helper()
	cmd, said, mark, runs := s.start(t, values, "24")
	_ = cmd.Wait() // a verdict on so short a run is not asked for
	gone(t, "success", mark)
	all := said.String()
	t.Log(all[max(0, len(all)-2500):])
	for i, value := range strings.Split(values, ",") {
		if !strings.Contains(all, s.param+"="+value) {
			t.Errorf("nothing is said of %s=%s", s.param, value)
		}
		logs, _ := filepath.Glob(filepath.Join(runs, "*-sweep", "serve-"+string(rune('0'+i))+".log"))
		if info, err := os.Stat(strings.Join(logs, "")); err != nil || info.Size() == 0 {
			t.Errorf("the log of server %d: %v", i, err)
		}
	}
	if !strings.Contains(all, "tok/s per user") || strings.Contains(all, "Failed requests:                         1") {
		t.Errorf("no Pareto table, or failed requests:\n%s", all)
	}
}

// fails has a last setting with which the server does not start.
func (s *engineSweep) fails(t *testing.T, values, why string) {
	t.Helper()
	cmd, said, mark, _ := s.start(t, values, "8")
	err := cmd.Wait()
	gone(t, "failure", mark)
	if all := said.String(); err == nil || !strings.Contains(all, "the server ended by itself") || !strings.Contains(all, why) {
		t.Errorf("%v\n%s", err, all)
	}
}

// isStopped sends tacho a signal while it measures.
func (s *engineSweep) isStopped(t *testing.T, values string, signal os.Signal) {
	t.Helper()
	cmd, said, mark, runs := s.start(t, values, "2000")
	measures := func() bool {
		files, _ := filepath.Glob(filepath.Join(runs, "*-sweep", "records.jsonl"))
		info, err := os.Stat(strings.Join(files, ""))
		return err == nil && info.Size() > 0
	}
	for deadline := time.Now().Add(3 * time.Minute); !measures(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			t.Fatalf("nothing was measured:\n%s", said)
		}
	}
	if n := len(marked(mark)); n < 2 {
		t.Errorf("%d processes carry the mark: is the server among them?", n)
	}
	_ = cmd.Process.Signal(signal)
	_ = cmd.Wait()
	gone(t, signal.String(), mark)
}
