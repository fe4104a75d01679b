//go:build real

package cli_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// A pane is a tmux terminal with a shell.
type pane struct {
	t      *testing.T
	socket string
}

// openPane starts a terminal of the given size with a typical environment: no
// CI, and a UTF-8 locale.
func openPane(t *testing.T, wide, high string, env ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("there is no tmux: make tmux installs it")
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	shell := "env -u CI -u NO_COLOR PS1='$ ' LC_ALL=C.UTF-8 env " + strings.Join(env, " ") + " bash --norc --noprofile -i"
	p.tmux("-f", os.DevNull, "-u", "new-session", "-d", "-c", filepath.Dir(p.socket), "-x", wide, "-y", high, shell)
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

// colours returns the screen with color sequences.
func (p *pane) colours() string { return p.tmux("capture-pane", "-p", "-e") }

// inView reports whether the alternate screen is active.
func (p *pane) inView() bool { return p.state("#{alternate_on}") == "1" }

func (p *pane) state(of string) string {
	return strings.TrimSpace(p.tmux("display-message", "-p", of))
}

func (p *pane) until(holds func() bool) {
	p.t.Helper()
	until(p.t, p.screen, holds)
}

// shows waits until the screen contains all words.
func (p *pane) shows(words ...string) {
	p.t.Helper()
	p.until(func() bool {
		screen := p.screen()
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(screen, w) })
	})
}

// view waits until a run has drawn a frame of its view.
func (p *pane) view() {
	p.t.Helper()
	p.until(func() bool { return p.inView() && strings.Contains(p.screen(), "target 20/s") })
}

// drawn waits until tacho-view has drawn a frame of the given size; it draws
// again only when the size changes.
func (p *pane) drawn(size string) {
	p.t.Helper()
	p.until(func() bool { return p.state("#{pane_title}") == size })
}

var writeViews = flag.Bool("views", false, "write the golden screens anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "view", name)
	if *writeViews {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// The view is correct in terminals of several sizes and during resizing, for
// any text of a server, and it restores the terminal.
func TestRealViewInTerminal(t *testing.T) {
	p := openPane(t, "80", "24")
	p.send("tacho-view", "Enter")
	p.drawn("80x24")
	golden(t, "80x24.txt", p.screen())
	golden(t, "80x24.ansi", p.colours())
	for _, size := range [][2]string{{"200", "50"}, {"48", "16"}, {"80", "24"}} {
		p.tmux("resize-window", "-x", size[0], "-y", size[1])
		p.drawn(size[0] + "x" + size[1])
		golden(t, size[0]+"x"+size[1]+".txt", p.screen())
	}
	if !p.inView() || p.state("#{cursor_flag}") != "0" {
		t.Error("the view has no page of its own, or a cursor")
	}
	p.send("C-c")
	p.until(func() bool {
		screen := p.screen()
		return strings.Contains(screen, "the report") && strings.HasSuffix(strings.TrimSpace(screen), "$") // the shell's prompt
	})
	after := p.screen()
	for _, want := range []string{"$ tacho-view", "Run directory: runs/20260301-120000-vllm", `\x1b[2J\x1b[31mno\a room`, "Stopping; finished requests are stored.", "the report"} {
		if !strings.Contains(after, want) {
			t.Errorf("there is no %q behind it:\n%s", want, after)
		}
	}
	p.clean()
	if strings.Contains(after, "Verdict") {
		t.Errorf("the view is still there:\n%s", after)
	}
}

// clean checks that the terminal is restored.
func (p *pane) clean() {
	p.t.Helper()
	if p.inView() || p.state("#{cursor_flag}") != "1" || p.state("#{wrap_flag}") != "1" {
		p.t.Errorf("the terminal is left as it was not: other page %v, cursor %s, wrap %s", p.inView(), p.state("#{cursor_flag}"), p.state("#{wrap_flag}"))
	}
}

// Without color, or in a locale without block characters, the view uses
// neither.
func TestRealViewInPoorTerminal(t *testing.T) {
	p := openPane(t, "80", "24", "NO_COLOR=1", "LC_ALL=C", "LANG=C")
	p.send("tacho-view", "Enter")
	p.drawn("80x24")
	golden(t, "poor-80x24.ansi", p.colours())
}

const load = " --random-input-len 20 --random-output-len 20 --request-rate 20 "

// benchHeld returns a run of 20 requests that lasts until the server answers.
// It prints its exit code.
func benchHeld(t *testing.T, server *heldServer) string {
	t.Helper()
	return "cd " + t.TempDir() + "; clear; tacho bench --base-url " + server.URL + " --no-trial --tokenizer gpt-4o --num-prompts 20" + load + "--progress-interval 1; echo ended $?"
}

// ended waits until the run has ended with any verdict.
func (p *pane) ended() {
	p.t.Helper()
	p.until(func() bool {
		screen := p.screen()
		return strings.Contains(screen, "ended 0") || strings.Contains(screen, "ended 4")
	})
}

// A run shows its view and removes it at the end, when suspended, and when
// stopped once or twice.
func TestRealRunInTerminal(t *testing.T) {
	p, server := openPane(t, "80", "24"), holdAnswers(t)
	p.send(benchHeld(t, server), "Enter")
	p.view()
	server.answer()
	p.ended()
	p.clean()
	if text := p.tmux("capture-pane", "-p", "-S", "-200"); strings.Contains(text, "so far") || !strings.Contains(text, "Verdict:") {
		t.Errorf("this is no report:\n%s", text)
	}

	const endless = "clear; tacho bench --sim vllm-8b-h100 --max-seconds 100000" + load
	p.send(endless, "Enter")
	p.view()
	p.send("C-z")
	p.shows("Stopped")
	p.clean()
	p.send("clear; fg; echo stopped $?", "Enter")
	p.view()
	p.send("C-c")
	p.shows("stopped 130")
	p.clean()

	p.send(endless+"; echo killed $?", "Enter")
	p.view()
	p.send("C-c", "C-c")
	p.shows("killed 130")
	p.clean()
}

// Keys work in a real terminal, which echoes and collects lines again behind the view.
func TestRealKeys(t *testing.T) {
	p := openPane(t, "80", "24")
	const endless = "clear; tacho bench --sim vllm-8b-h100 --max-seconds 100000" + load
	p.send(endless+"; echo ended $?", "Enter")
	p.view()
	p.send("?")
	p.shows("as --max-seconds would")
	p.send("?", "h")
	p.shows("TTFT so far")
	p.send("C-z")
	p.shows("Stopped")
	p.cooked()
	p.send("clear; fg; echo ended $?", "Enter")
	p.view()
	p.send("n")
	p.ended()
	if text := p.tmux("capture-pane", "-p", "-S", "-200"); !strings.Contains(text, "ended-early") {
		t.Errorf("the report does not say that the level was ended:\n%s", text)
	}
	p.clean()
	p.cooked()
	p.send(endless+"; echo stopped $?", "Enter")
	p.view()
	p.send("q")
	p.shows("stopped 130")
	p.clean()
	p.cooked()
}

// cooked checks that the terminal echoes and collects lines.
func (p *pane) cooked() {
	p.t.Helper()
	p.send("clear; stty -a; echo that is all", "Enter")
	p.shows("that is all\n")
	if screen := p.screen(); strings.Contains(screen, "-icanon") || strings.Contains(screen, "-echo ") {
		p.t.Errorf("the terminal was not restored:\n%s", screen)
	}
}

// A terminal without cursor movement gets plain lines.
func TestRealRunInDumbTerminal(t *testing.T) {
	for _, env := range []string{"TERM=dumb", "-u TERM", "CI=true"} {
		p, server := openPane(t, "150", "50", env), holdAnswers(t)
		all := filepath.Join(t.TempDir(), "all")
		p.tmux("pipe-pane", "cat > "+all)
		p.send(benchHeld(t, server), "Enter")
		p.shows("Level 1 of 1", "served 0/s")
		server.answer()
		p.ended()
		var printed []byte
		p.until(func() bool { printed, _ = os.ReadFile(all); return bytes.Contains(printed, []byte("\nended ")) })
		if bytes.Contains(printed, []byte("\x1b[?1049h")) {
			t.Errorf("%s: a view:\n%q", env, printed)
		}
	}
}
