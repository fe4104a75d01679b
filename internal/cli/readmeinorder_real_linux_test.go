//go:build real

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// readmeSteps are the commands of the README in order: what each begins with, what its output
// has, and the exit codes that a busy machine or a real difference may cause.
var readmeSteps = []struct {
	command, output string
	codes           []int
}{
	{"make run", `(?ms)^max-concurrency +ok .*^[A-Z, ]*SIMULATED: `, []int{2}}, // make fails if the verdict is INVALID
	{"export PATH=", ``, nil},
	{"tacho sim ", ``, nil},
	{"tacho bench --base-url ", `(?ms)^Verdict: +(VALID|DEGRADED|INVALID).*^Mean TTFT \(ms\): +\d`, []int{4}},
	{"tacho bench serve ", `(?ms)^Verdict: +(VALID|DEGRADED|INVALID).*^Successful requests: +100\b`, []int{4}},
	{"tacho bench --base-url ", `(?m)^max-concurrency +ok .*\n( +\d+ .*(VALID|DEGRADED|INVALID)\n){3}`, []int{4}},
	{"tacho report last --format csv", `(?m)^run,model,url,.*\n(20\d{6}-.*\n){3}`, nil},
	{"tacho bench --plan last --label after", `(?m)^Page: runs/.*-after/report.html$`, []int{4}},
	{"tacho compare last~1 last --fail-if ", `(?m)^(PASSED|FAILED|NOT JUDGED) max-concurrency 16: tpot.mean>\+5%: `, []int{3, 4, 5}},
	{"tacho find ", ``, nil},
	{"tacho predict ", `(?m)^request-rate +ok .*\n( +\d+ .*PREDICTED\n){3}`, nil},
	{"kill %1", ``, nil},
}

// TestRealReadme clones the repository with the changes of the working tree, and runs all
// commands of the README in one shell, in order.
func TestRealReadme(t *testing.T) {
	clone := cloneTree(t)
	text := must.Get(os.ReadFile(filepath.Join(clone, "README.md")))(t)
	commands, shown := readmeCommands(string(text))
	if len(commands) != len(readmeSteps) {
		t.Fatalf("the README has %d commands, the test knows %d: %q", len(commands), len(readmeSteps), commands)
	}
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	must.Do(t, listener.Close())
	var script strings.Builder
	for i, command := range commands {
		fmt.Fprintf(&script, "echo; echo @@begin %d\n%s\necho; echo @@end %[1]d $?\n", i, strings.ReplaceAll(command, "8000", port))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-c", script.String())
	bash.Dir = clone
	bash.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "TACHO_") }), "CI=")
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bash.Cancel = func() error { return syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) }
	bash.WaitDelay = time.Second
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, step := range readmeSteps {
		if !strings.HasPrefix(commands[i], step.command) {
			t.Errorf("command %d of the README is %q, want %q", i, commands[i], step.command)
			continue
		}
		_, printed, _ := strings.Cut(string(out), fmt.Sprintf("\n@@begin %d\n", i))
		printed, rest, ended := strings.Cut(printed, fmt.Sprintf("\n@@end %d ", i))
		code, err := strconv.Atoi(strings.SplitN(rest, "\n", 2)[0])
		if !ended || err != nil || code != 0 && !slices.Contains(step.codes, code) || !regexp.MustCompile(step.output).MatchString(printed) {
			t.Errorf("%s\nexit code %d, want output like %s\n%s", commands[i], code, step.output, printed)
		}
		got := forms(printed)
		for form := range forms(shown[i]) {
			if !got[form] {
				t.Errorf("%s\nthe README shows %q, which it does not print:\n%s", commands[i], form, printed)
			}
		}
	}
}

// readmeCommands returns the commands after a $, and the output that follows each in its block.
func readmeCommands(text string) (commands, shown []string) {
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands, shown = append(commands, strings.TrimSpace(command)), append(shown, "")
			} else {
				shown[len(shown)-1] += line
			}
		}
	}
	return commands, shown
}

// cloneTree clones the repository and copies the files that differ from the last commit.
func cloneTree(t *testing.T) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "tacho")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	root := strings.TrimSpace(git("rev-parse", "--show-toplevel"))
	git("clone", "-q", root, clone)
	for name := range strings.FieldsSeq(git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")) {
		to := filepath.Join(clone, name)
		info, err := os.Stat(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(to)
		} else if err == nil {
			var b []byte
			if b, err = os.ReadFile(filepath.Join(root, name)); err == nil {
				if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
					err = os.WriteFile(to, b, info.Mode())
				}
			}
		}
		must.Do(t, err)
	}
	return clone
}
