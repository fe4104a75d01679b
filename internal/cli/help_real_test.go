//go:build real

package cli_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// groff accepts the manual pages without warnings.
func TestRealManPages(t *testing.T) {
	dir := t.TempDir()
	if code, out, stderr := program(nil, "man", dir); code != 0 {
		t.Fatalf("exit code %d, %s%s", code, out, stderr)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		out, err := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww", "-W", "break", page).CombinedOutput() // a long list of values is one word
		if err != nil || strings.Contains(string(out), "warning") || strings.Contains(string(out), "error:") {
			t.Errorf("groff: %v\n%s", err, out[:min(len(out), 2000)])
		}
	}
}
