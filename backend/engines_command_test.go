//go:build engines

package backend_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// command is tacho itself, built for the test.
func command(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tacho")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/tacho").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// measure has tacho send twelve random prompts to a server, all of which must
// be answered, and returns what it says of them. The models here have a few
// hundred tokens, fewer than the ids that random prompts are usually drawn from.
func measure(t *testing.T, server string, flags ...string) string {
	t.Helper()
	words := append([]string{
		"bench", "--base-url", server, "--model", "tiny", "--num-prompts", "12", "--max-concurrency", "2",
		"--random-input-len", "16", "--random-output-len", "4", "--runs-dir", t.TempDir(),
	}, flags...)
	cmd := exec.CommandContext(t.Context(), command(t), words...)
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY="+engineKey)
	out, _ := cmd.CombinedOutput() // a verdict on so short a run is not asked for
	if said := string(out); !strings.Contains(said, "Successful requests:                     12 ") && !strings.Contains(said, "Successful requests:                     12\n") {
		t.Errorf("%s: not all of 12 requests succeeded:\n%s", strings.Join(flags, " "), said)
	}
	return string(out)
}
