//go:build real

package proof

import (
	"cmp"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestRealFleetCost measures the cost of a prediction for 64 replicas with the
// command, on one core: `make bench-fleet`.
func TestRealFleetCost(t *testing.T) {
	requests := os.Getenv("FLEET_REQUESTS")
	if requests == "" {
		t.Skip("make bench-fleet runs it")
	}
	dir := t.TempDir()
	tool, err := built()
	if err != nil {
		t.Fatal(err)
	}
	engine := cmp.Or(os.Getenv("FLEET_ENGINE"), "vllm-8b-h100")
	cmd := exec.Command(tool, "predict", "--engine", engine, "--replicas", "64", "--router", "least-loaded", "--request-rate", "1000", "--num-prompts", requests,
		"--random-input-len", "512", "--random-output-len", "128", "--seed", "1", "--no-html", "--runs-dir", dir)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%s requests of 128 tokens over 64 replicas of %s: %.1f s of processor time, at most %d MiB", requests, engine,
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), used.Maxrss>>10)
}
