package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// TestOpen checks that open passes the stored page to the browser, and prints
// its path if the browser fails.
func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		if code, _, stderr := inside(nil, "bench", "--virtual", "--sim", "vllm-8b-h100", "--num-prompts", "5"); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	})
	pages, err := filepath.Glob("runs/*/report.html")
	if err != nil || len(pages) != 1 {
		t.Fatalf("%v, %v", pages, err)
	}
	want, err := filepath.Abs(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, fails := range map[string]error{"browser": nil, "broken browser": errors.New("no display")} {
		var out, errs bytes.Buffer
		opened := ""
		env := &cli.Env{
			Args: []string{"open", "last"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
			Browse: func(path string) error { opened = path; return fails },
		}
		code := cli.Main(env)
		if code != 0 || opened != want || strings.Contains(out.String(), want) != (fails != nil) {
			t.Errorf("%s: exit code %d, opened %q, want %q; printed %q", name, code, opened, want, out.String())
		}
	}
	if err := os.Remove(want); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	code, stdout, stderr := inside(nil, "open")
	page, err := os.ReadFile(strings.TrimSpace(stdout))
	if code != 0 || err != nil || !bytes.Contains(page, []byte("<html")) {
		t.Errorf("a run without a page: exit code %d, %q, %v: %s", code, stdout, err, stderr)
	}
}
