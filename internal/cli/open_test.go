package cli_test

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/report/page"
)

// TestOpen checks that open passes a page that it made itself to the browser, whatever lies in the run directory, and
// prints its path if the browser fails.
func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	cache := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, cache)
	}
	synctest.Test(t, func(t *testing.T) {
		if code, _, stderr := inside(nil, "bench", "--virtual", "--sim", "vllm-8b-h100", "--num-prompts", "5"); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	})
	pages, err := filepath.Glob("runs/*/report.html")
	if err != nil || len(pages) != 1 {
		t.Fatalf("%v, %v", pages, err)
	}
	own, err := os.ReadFile(pages[0])
	if err != nil || !page.IsOurs(own) {
		t.Fatalf("bench wrote another page than open accepts: %v", err)
	}
	script := filepath.Join(t.TempDir(), "script.html")
	must.Do(t, os.WriteFile(script, []byte("<script>alert(1)</script>"), 0o600))
	first := ""
	for name, put := range map[string]func() error{
		"own page":    func() error { return nil },
		"script":      func() error { return os.WriteFile(pages[0], []byte("<script>alert(1)</script>"), 0o600) },
		"with script": func() error { return os.WriteFile(pages[0], append(own, "<script>alert(1)</script>"...), 0o600) },
		"link":        func() error { return errors.Join(os.Remove(pages[0]), os.Symlink(script, pages[0])) },
		"folder":      func() error { return errors.Join(os.Remove(pages[0]), os.Mkdir(pages[0], 0o700)) },
		"no page":     func() error { return os.Remove(pages[0]) },
	} {
		must.Do(t, put())
		for _, fails := range []error{nil, errors.New("no display")} {
			var out, errs bytes.Buffer
			opened := ""
			env := &cli.Env{
				Args: []string{"open", "last"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
				Browse: func(path string) error { opened = path; return fails },
			}
			code := cli.Main(env)
			html, err := os.ReadFile(opened)
			if code != 0 || err != nil || !page.IsOurs(html) || !strings.HasPrefix(opened, cache) || strings.Contains(out.String(), opened) != (fails != nil) {
				t.Errorf("%s: exit code %d, opened %q, %v; printed %q %s", name, code, opened, err, out.String(), errs.String())
			}
			if info, err := os.Stat(filepath.Dir(opened)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
				t.Errorf("%s: other users can read the folder of pages: %v, %v", name, info, err)
			}
			if first = cmp.Or(first, opened); opened != first {
				t.Errorf("%s: a second page %q for the run, want %q", name, opened, first)
			}
		}
		must.Do(t, os.RemoveAll(pages[0]))
		must.Do(t, os.WriteFile(pages[0], own, 0o600))
	}
}
