//go:build real

package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

var actionRun = regexp.MustCompile(`(?m)^ *- run: (.*)$`)

// TestRealGatesOfActions runs the documented steps of a CI job in order,
// against a server and earlier runs. A gate may fail or be undecided, because
// it compares real measurements of only 20 requests.
func TestRealGatesOfActions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the steps are for bash")
	}
	server := serve(t)
	dir := t.TempDir()
	plan := "num_prompts: 20\nrequest_rate: 100\nrandom_input_len: 20\nrandom_output_len: 5\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "bench.yaml"), []byte(plan), 0o644))
	var steps []string
	for _, m := range actionRun.FindAllStringSubmatch(readPage(t, "ci.md"), -1) {
		steps = append(steps, m[1])
	}
	if len(steps) < 2 {
		t.Fatalf("ci.md has %d steps: has the notation changed?", len(steps))
	}
	measure := regexp.MustCompile(`--runs-dir [a-z]+`).ReplaceAllString(steps[0], "--runs-dir before")
	for _, step := range append([]string{measure}, steps...) {
		cmd := exec.Command("bash", "-c", step)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(),
			"TACHO_BASE_URL=http://"+server, "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && slices.Contains([]int{3, 4, 5}, exit.ExitCode()) {
			err = nil
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", step, err, out)
		}
	}
	summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil || !strings.Contains(string(summary), "| TTFT") {
		t.Errorf("the summary is %q (%v)", summary, err)
	}
}
