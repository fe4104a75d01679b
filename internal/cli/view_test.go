package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// A fakeTerminal is a terminal that accepts only the sequences of the live
// view.
type fakeTerminal struct {
	wide, high int

	first               strings.Builder // text on the main screen
	other               bool            // the alternate screen is active
	noCursor, noWrap    bool
	rows                []string // of the alternate screen, without colors
	row                 int      // of the cursor
	unknown, overflowed []string
}

var sequence = regexp.MustCompile(`\x1b\[[?\d;]*[A-Za-z]|\r\n|[^\x1b\r]+|.`)

// Write implements io.Writer.
func (f *fakeTerminal) Write(p []byte) (int, error) {
	for _, s := range sequence.FindAllString(string(p), -1) {
		switch {
		case s == "\x1b[?1049h", s == "\x1b[?1049l":
			f.other = strings.HasSuffix(s, "h")
		case s == "\x1b[?25l", s == "\x1b[?25h":
			f.noCursor = strings.HasSuffix(s, "l")
		case s == "\x1b[?7l", s == "\x1b[?7h":
			f.noWrap = strings.HasSuffix(s, "l")
		case !f.other && s[0] != '\x1b':
			f.first.WriteString(s)
		case s == "\x1b[H":
			f.row = 0
		case s == "\x1b[2J":
			f.rows = make([]string, f.high)
		case s == "\x1b[J":
			clear(f.rows[f.row:])
		case s == "\x1b[K": // the cursor is always in the first column
			f.rows[f.row] = ""
		case s == "\r\n":
			if f.row++; f.row == f.high {
				f.overflowed = append(f.overflowed, f.rows[0])
				f.row--
			}
		case strings.HasPrefix(s, "\x1b[") && strings.HasSuffix(s, "m"):
		case strings.ContainsAny(s, "\x1b\r\n\a"):
			f.unknown = append(f.unknown, s)
		default:
			f.rows[f.row] += s
		}
	}
	return len(p), nil
}

// screen returns the alternate screen as text.
func (f *fakeTerminal) screen() string {
	var b strings.Builder
	for _, row := range f.rows {
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return b.String()
}

var writeScreens = flag.Bool("screens", false, "rewrite the screens in testdata/view")

// The view is redrawn completely when the terminal is resized, a server cannot
// send control sequences, and the terminal is restored. TestRealViewInTerminal
// compares tmux with the same files.
func TestView(t *testing.T) {
	f := &fakeTerminal{}
	env := &Env{
		Getenv: func(name string) string { return map[string]string{"TERM": "xterm", "LC_ALL": "C.UTF-8"}[name] }, Terminal: true,
		Width: func() int { return f.wide }, Height: func() int { return f.high },
	}
	p := newView(env, f)
	for i, size := range []string{"80x24", "200x50", "48x16", "80x24"} {
		must.Get(fmt.Sscanf(size, "%dx%d", &f.wide, &f.high))(t)
		p.Draw()
		if i == 0 {
			sayHostile(env)
			p.Draw()
		}
		path := filepath.Join("testdata", "view", size+".txt")
		if *writeScreens {
			must.Do(t, os.WriteFile(path, []byte(f.screen()), 0o644))
		}
		want := must.Get(os.ReadFile(path))(t)
		if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(f.screen(), "\n")); d != "" {
			t.Errorf("%s (-want +got):\n%s", size, d)
		}
	}
	if !f.other || !f.noCursor || f.first.Len() > 0 {
		t.Errorf("alternate screen %v, cursor hidden %v, printed behind the view: %q", f.other, f.noCursor, f.first.String())
	}
	p.Stop()
	if f.other || f.noCursor || f.noWrap || f.unknown != nil || f.overflowed != nil {
		t.Errorf("alternate screen %v, cursor hidden %v, wrap off %v, unknown sequences %q, lines scrolled away %q", f.other, f.noCursor, f.noWrap, f.unknown, f.overflowed)
	}
	if after := f.first.String(); !strings.HasPrefix(after, "Run directory: runs/20260301-120000-vllm\n"+`\x1b[2J\x1b[31mno\a room`) || strings.Contains(after, "Verdict") {
		t.Errorf("after the view: %q", after)
	}
}
