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

	"github.com/tacho-bench/tacho/internal/must"
)

// llamaServe is llama.cpp's server as a command with a model, a port and a number of slots. It runs in a separate
// process, like larger engines.
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

// A sweep over the settings of a real server leaves no process behind: after success, after a failed setting, after
// Ctrl-C, and after tacho is killed.
func TestEngineSweepLlamaCPP(t *testing.T) {
	script := filepath.Join(t.TempDir(), "serve.py")
	must.Do(t, os.WriteFile(script, []byte(llamaServe), 0o600))
	s := &engineSweep{
		binary: command(t), param: "parallel",
		serve: installed(t, "engines", llamaPackage) + " " + script + " " + tinyModel(t) + " {port} {parallel}",
	}
	s.succeeds(t, "1,2")
	s.fails(t, "1,many", "ValueError")
	s.isStopped(t, "1", os.Interrupt)
	s.isStopped(t, "1", os.Kill)
}

// An engineSweep holds the settings common to all sweeps of one server.
type engineSweep struct {
	binary, serve, param string
	env                  []string
}

// start starts a sweep. All its processes carry a mark in their environment.
func (s *engineSweep) start(t *testing.T, values, prompts string) (cmd *exec.Cmd, output *strings.Builder, mark, runs string) {
	t.Helper()
	mark, runs, output = "TACHO_SWEEP_TEST="+t.TempDir(), t.TempDir(), &strings.Builder{}
	cmd = exec.CommandContext(t.Context(), s.binary, "sweep", "--serve-cmd", s.serve, "--serve-param", s.param+"="+values, "--",
		"--model", "tiny", "--num-prompts", prompts, "--max-concurrency", "2", "--random-input-len", "16", "--random-output-len", "8",
		"--runs-dir", runs, "--label", "sweep", "--disable-tqdm")
	cmd.Env = append(append(os.Environ(), s.env...), mark)
	cmd.Stdout, cmd.Stderr = output, output
	must.Do(t, cmd.Start())
	return cmd, output, mark, runs
}

// marked returns the processes with the mark.
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

// checkNoProcesses fails if processes of a sweep remain. Killed processes get a moment to end.
func checkNoProcesses(t *testing.T, when, mark string) {
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
	cmd, output, mark, runs := s.start(t, values, "24")
	_ = cmd.Wait() // ignore the verdict on a short run
	checkNoProcesses(t, "success", mark)
	all := output.String()
	t.Log(all[max(0, len(all)-2500):])
	for i, value := range strings.Split(values, ",") {
		if !strings.Contains(all, s.param+"="+value) {
			t.Errorf("the output does not mention %s=%s", s.param, value)
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

// fails runs a sweep with a last setting that prevents the server from starting.
func (s *engineSweep) fails(t *testing.T, values, why string) {
	t.Helper()
	cmd, output, mark, _ := s.start(t, values, "8")
	err := cmd.Wait()
	checkNoProcesses(t, "failure", mark)
	if all := output.String(); err == nil || !strings.Contains(all, "the server ended by itself") || !strings.Contains(all, why) {
		t.Errorf("%v\n%s", err, all)
	}
}

// isStopped sends tacho a signal during the measurement.
func (s *engineSweep) isStopped(t *testing.T, values string, signal os.Signal) {
	t.Helper()
	cmd, output, mark, runs := s.start(t, values, "2000")
	measures := func() bool {
		files, _ := filepath.Glob(filepath.Join(runs, "*-sweep", "records.jsonl"))
		info, err := os.Stat(strings.Join(files, ""))
		return err == nil && info.Size() > 0
	}
	for deadline := time.Now().Add(3 * time.Minute); !measures(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			t.Fatalf("nothing was measured:\n%s", output)
		}
	}
	if n := len(marked(mark)); n < 2 {
		t.Errorf("%d processes carry the mark: is the server among them?", n)
	}
	_ = cmd.Process.Signal(signal)
	_ = cmd.Wait()
	checkNoProcesses(t, signal.String(), mark)
}
