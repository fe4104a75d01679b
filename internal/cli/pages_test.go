package cli_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// TestTroubleshootingQuotesCode checks that every message on the page exists in
// the code. Dots stand for variable parts.
func TestTroubleshootingQuotesCode(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.' { // caches, which other programs change
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		code.Write(b)
		return err
	})
	must.Do(t, err)
	page := readPage(t, "troubleshooting.md")
	messages := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(page, -1)
	if len(messages) < 10 {
		t.Fatalf("%d messages: has the notation changed?", len(messages))
	}
	for _, m := range messages {
		for part := range strings.SplitSeq(m[1], "...") {
			if part = strings.TrimSpace(part); part != "" && !strings.Contains(code.String(), part) {
				t.Errorf("nothing prints %q any more", part)
			}
		}
	}
}

// TestMovingNamesFlags checks that every flag in tacho's columns exists.
func TestMovingNamesFlags(t *testing.T) {
	t.Parallel()
	var known []string
	for _, command := range []string{"bench", "find", "report", "compare"} {
		known = append(known, flagsOf(helpOf(t, 80, command, "--help-all"))...)
	}
	found := 0
	for line := range strings.Lines(readPage(t, "moving.md")) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, flag := range regexp.MustCompile(`--[a-z][a-z0-9-]+`).FindAllString(cells[1], -1) {
			found++
			if !slices.Contains(known, flag) {
				t.Errorf("there is no %s: %s", flag, line)
			}
		}
	}
	if found < 40 {
		t.Errorf("found %d flags: has the notation changed?", found)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join("../../docs", name)))(t))
}

// TestExitCodes produces each exit code of the table once. The stop script
// covers signals.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		broken := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
		defer broken.Close()
		seed := "../../testdata/seeds/003_659e43dd1329acd2.txt"
		cases := map[string][]string{
			"0": {"report", seed, "--fail-if", "ttft.mean>10m"},
			"1": {"bench", "--base-url", unreachable, "--runs-dir", dir},
			"2": {"bench", "--num-prompts", "many"},
			"3": {"report", seed, "--fail-if", "ttft.mean>1ms"},
			"5": {"report", seed, "--fail-if", "read_lag.p99>1ms"},
			"6": {"find", "--slo", "ttft:p99<500ms", "--virtual", "--sim", "vllm-8b-h100", "--budget", "5s", "--runs-dir", dir, "--no-html"},
			"4": {"bench", "--base-url", broken.URL, "--model", "m", "--no-trial", "--num-prompts", "3", "--runs-dir", dir, "--no-html"},
		}
		for _, e := range cli.ExitCodes() {
			args := cases[e[0]]
			if e[0] == "128+n" {
				continue
			}
			if args == nil {
				t.Errorf("nothing ends with %s (%s)", e[0], e[1])
				continue
			}
			if code, stdout, stderr := inside(nil, args...); strconv.Itoa(code) != e[0] {
				t.Errorf("tacho %v: exit code %d, want %s\n%s%s", args, code, e[0], stdout, stderr)
			}
		}
	})
}
