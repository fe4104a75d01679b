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
)

var (
	inFence  = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```")
	inCode   = regexp.MustCompile("`[^`]+`")
	indented = regexp.MustCompile(`(?m)^    .*$`)
	inQuotes = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	spoken   = regexp.MustCompile(`(?m)(?:^[ $]*|` + "`" + `|run: )tacho ([a-z0-9]+)((?: +[^ 
|>&` + "`" + `]+)*)`)
	listed    = regexp.MustCompile(`(?m)^  ([a-z0-9]+) +[A-Z]`)
	flagWord  = regexp.MustCompile(`(?:^|[ \[])(--[a-z][a-z0-9-]*)`)
	actionRun = regexp.MustCompile(`(?m)^ *- run: (.*)$`)
)

// code is all that a document sets as code, with what is in quotes left out: the
// commands of others.
func code(text string) string {
	var b strings.Builder
	for _, m := range inFence.FindAllStringSubmatch(text, -1) {
		if m[1] != "go" {
			b.WriteString(strings.ReplaceAll(m[2], "\\\n", " "))
		}
	}
	text = inFence.ReplaceAllString(text, "")
	for _, m := range slices.Concat(inCode.FindAllString(text, -1), indented.FindAllString(text, -1)) {
		b.WriteString(strings.ReplaceAll(m, "\n", " ") + "\n")
	}
	return inQuotes.ReplaceAllString(b.String(), "X")
}

// TestDocumentsNameCommandsAndFlags looks up every command that a document speaks
// of, and its flags.
func TestDocumentsNameCommandsAndFlags(t *testing.T) {
	t.Parallel()
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := []string{"help"}
	for _, m := range listed.FindAllStringSubmatch(helpOf(t, 80, "--help"), -1) {
		commands = append(commands, m[1])
	}
	flags := map[string][]string{}
	known := func(command string) []string {
		if flags[command] == nil {
			flags[command] = append(flagsOf(helpOf(t, 80, command, "--help-all")), "--help", "--help-all", "--router") // another name of --balance
		}
		return flags[command]
	}
	found := 0
	for _, doc := range append(docs, "../README.md", "../CONTRIBUTING.md") {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range spoken.FindAllStringSubmatch(code(string(b)), -1) {
			command, words := m[1], m[2]
			if !slices.Contains(commands, command) {
				if doc != "../docs/extending.md" { // which adds one
					t.Errorf("%s: there is no tacho %s", doc, command)
				}
				continue
			}
			own, afterDashes, _ := strings.Cut(words, " -- ") // which are for bench
			for of, words := range map[string]string{command: own, "bench": afterDashes} {
				for _, flag := range flagWord.FindAllStringSubmatch(words, -1) {
					found++
					if !slices.Contains(known(of), flag[1]) {
						t.Errorf("%s: tacho %s has no %s", doc, of, flag[1])
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("found %d flags: has the notation changed?", found)
	}
}

// TestGatesOfActions runs the steps that documents have for a job of CI, one after
// the other as the job does, against a server and runs of before. A gate may close,
// for what it compares is measured.
func TestGatesOfActions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the steps are for bash")
	}
	server := serve(t)
	for page, before := range map[string]string{"ci.md": "before", "compare.md": "main"} {
		dir := t.TempDir()
		plan := "num_prompts: 20\nrequest_rate: 100\nrandom_input_len: 20\nrandom_output_len: 5\n"
		if err := os.WriteFile(filepath.Join(dir, "bench.yaml"), []byte(plan), 0o644); err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, m := range actionRun.FindAllStringSubmatch(readPage(t, page), -1) {
			steps = append(steps, m[1])
		}
		if len(steps) < 2 {
			t.Fatalf("%s has %d steps: has the notation changed?", page, len(steps))
		}
		measure := regexp.MustCompile(`--runs-dir [a-z]+`).ReplaceAllString(steps[0], "--runs-dir "+before)
		for _, step := range append([]string{measure}, steps...) {
			cmd := exec.Command("bash", "-c", step)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TACHO_BASE_URL=http://"+server, "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && (exit.ExitCode() == 3 || exit.ExitCode() == 4) {
				err = nil
			}
			if err != nil {
				t.Fatalf("%s: %s: %v\n%s", page, step, err, out)
			}
		}
		summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
		if err != nil || !strings.Contains(string(summary), "| TTFT") {
			t.Errorf("%s: the summary is %q (%v)", page, summary, err)
		}
	}
}
