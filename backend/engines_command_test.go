//go:build engines

package backend_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// command builds tacho for the test and returns its path.
func command(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tacho")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/tacho").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// measure runs tacho with twelve random prompts against a server and returns the output. All requests must succeed.
// The models here have a few hundred tokens, fewer than the default range of random token ids.
func measure(t *testing.T, server string, flags ...string) string {
	t.Helper()
	words := append([]string{
		"bench", "--base-url", server, "--model", "tiny", "--num-prompts", "12", "--max-concurrency", "2",
		"--random-input-len", "16", "--random-output-len", "4", "--runs-dir", t.TempDir(),
	}, flags...)
	cmd := exec.CommandContext(t.Context(), command(t), words...)
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY="+engineKey)
	out, _ := cmd.CombinedOutput() // ignore the verdict on a short run
	if output := string(out); !strings.Contains(output, "Successful requests:                     12 ") && !strings.Contains(output, "Successful requests:                     12\n") {
		t.Errorf("%s: not all of 12 requests succeeded:\n%s", strings.Join(flags, " "), output)
	}
	return string(out)
}
