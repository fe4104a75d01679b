//go:build terminal

package cli_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A pane is a terminal of tmux, with a shell in it.
type pane struct {
	t      *testing.T
	socket string
}

// open starts a terminal of some size. The environment is that of somebody at
// work: no CI, and a language with all characters.
func openPane(t *testing.T, wide, high string, env ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("there is no tmux: make tmux installs it")
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	shell := "env -u CI -u NO_COLOR PS1='$ ' LC_ALL=C.UTF-8 env " + strings.Join(env, " ") + " bash --norc --noprofile -i"
	p.tmux("-f", os.DevNull, "-u", "new-session", "-d", "-x", wide, "-y", high, shell)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() })
	p.until(func() bool { return strings.HasPrefix(p.screen(), "$") })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *pane) send(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }

func (p *pane) screen() string { return p.tmux("capture-pane", "-p") }

// colours is the screen with the sequences that colour it.
func (p *pane) colours() string { return p.tmux("capture-pane", "-p", "-e") }

// inView says whether the terminal shows its other page.
func (p *pane) inView() bool { return p.state("#{alternate_on}") == "1" }

func (p *pane) state(of string) string {
	return strings.TrimSpace(p.tmux("display-message", "-p", of))
}

func (p *pane) until(holds func() bool) {
	p.t.Helper()
	for range 1200 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("it never came:\n%s", p.screen())
}

// settled is a screen that has something on it and does not change any more.
func (p *pane) settled(with string) string {
	p.t.Helper()
	last := ""
	p.until(func() bool {
		before := last
		last = p.screen()
		return last == before && strings.Contains(last, with)
	})
	return last
}

var writeViews = flag.Bool("views", false, "write the golden screens anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "view", name)
	if *writeViews {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// The view is what it should be in terminals of two sizes, and while a terminal
// changes its size, whatever a server says; and it leaves no trace.
func TestViewInTerminal(t *testing.T) {
	p := openPane(t, "80", "24")
	p.send("tacho-view", "Enter")
	const last = "and so on"
	golden(t, "80x24.txt", p.settled(last))
	golden(t, "80x24.ansi", p.colours())
	p.tmux("resize-window", "-x", "200", "-y", "50")
	golden(t, "200x50.txt", p.settled(last))
	p.tmux("resize-window", "-x", "48", "-y", "16")
	p.until(func() bool { return !strings.Contains(p.screen(), "http://127.0.0.1:8000, random") })
	golden(t, "48x16.txt", p.settled("Verdict"))
	p.tmux("resize-window", "-x", "80", "-y", "24")
	golden(t, "80x24.txt", p.settled(last))
	if !p.inView() || p.state("#{cursor_flag}") != "0" {
		t.Error("the view has no page of its own, or a cursor")
	}
	p.send("C-c")
	after := p.settled("the report")
	for _, want := range []string{"$ tacho-view", "Kept in runs/20260301-120000-vllm", `\x1b[2J\x1b[31mno\a room`, "Stopping; what is finished is kept.", "the report"} {
		if !strings.Contains(after, want) {
			t.Errorf("there is no %q behind it:\n%s", want, after)
		}
	}
	p.clean()
	if strings.Contains(after, "Verdict") {
		t.Errorf("the view is still there:\n%s", after)
	}
}

// clean says that the terminal is as a shell wants it.
func (p *pane) clean() {
	p.t.Helper()
	if p.inView() || p.state("#{cursor_flag}") != "1" || p.state("#{wrap_flag}") != "1" {
		p.t.Errorf("the terminal is left as it was not: other page %v, cursor %s, wrap %s", p.inView(), p.state("#{cursor_flag}"), p.state("#{wrap_flag}"))
	}
}

// Without colour, and in a language without block characters, the view has neither.
func TestViewInPoorTerminal(t *testing.T) {
	p := openPane(t, "80", "24", "NO_COLOR=1", "LC_ALL=C", "LANG=C")
	p.send("tacho-view", "Enter")
	p.settled("Verdict")
	golden(t, "poor-80x24.ansi", p.colours())
}

// ended says whether a run is over, whatever its verdict.
func (p *pane) ended() bool {
	return strings.Contains(p.screen(), "ended 0") || strings.Contains(p.screen(), "ended 4")
}

// A run shows its view and takes it away again: when it is over, when it is
// suspended, and when it is stopped, once or twice.
func TestRunInTerminal(t *testing.T) {
	p := openPane(t, "80", "24")
	const bench = "tacho bench --sim vllm-8b-h100 --random-input-len 20 --random-output-len 20 --request-rate 20"
	p.send("cd "+t.TempDir()+"; clear; "+bench+" --max-seconds 3; echo ended $?", "Enter")
	p.until(p.inView)
	p.until(func() bool { return strings.Contains(p.screen(), "asked 20.0/s") })
	p.until(p.ended)
	p.clean()
	if text := p.tmux("capture-pane", "-p", "-S", "-200"); strings.Contains(text, "so far") || !strings.Contains(text, "Verdict:") {
		t.Errorf("this is no report:\n%s", text)
	}

	p.send("clear; "+bench+" --max-seconds 100", "Enter")
	p.until(p.inView)
	p.send("C-z")
	p.until(func() bool { return strings.Contains(p.screen(), "Stopped") })
	p.clean()
	p.send("fg", "Enter")
	p.until(func() bool { return p.inView() && strings.Contains(p.screen(), "asked 20.0/s") })
	p.send("C-c")
	p.until(func() bool { return strings.HasSuffix(strings.TrimSpace(p.screen()), "$") })
	p.send("echo stopped $?", "Enter")
	p.until(func() bool { return strings.Contains(p.screen(), "stopped 130") })
	p.clean()

	p.send("clear; "+bench+" --max-seconds 100; echo killed $?", "Enter")
	p.until(p.inView)
	p.send("C-c", "C-c")
	p.until(func() bool { return strings.Contains(p.screen(), "killed 130") })
	p.clean()
}

// A terminal that knows nothing but lines gets lines.
func TestRunInDumbTerminal(t *testing.T) {
	for _, env := range []string{"TERM=dumb", "-u TERM", "CI=true"} {
		p := openPane(t, "150", "50", env)
		p.send("cd "+t.TempDir()+"; clear; tacho bench --sim vllm-8b-h100 --random-input-len 20 --random-output-len 20 --request-rate 20 --max-seconds 4 --progress-interval 1; echo ended $?", "Enter")
		p.until(func() bool {
			if p.inView() {
				t.Fatalf("%s: a view", env)
			}
			return p.ended()
		})
		if all := p.tmux("capture-pane", "-p", "-S", "-100"); !strings.Contains(all, "served") {
			t.Errorf("%s: no line tells how it goes:\n%s", env, all)
		}
	}
}
