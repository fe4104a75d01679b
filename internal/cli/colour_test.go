package cli

import (
	"strings"
	"testing"
)

// Only a terminal that can show colours gets them, and only if NO_COLOR is not set.
func TestColoured(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		vars     string
		want     bool
	}{
		"terminal": {true, "TERM=xterm", true}, "pipe": {false, "TERM=xterm", false}, "NO_COLOR": {true, "TERM=xterm NO_COLOR=1", false},
		"dumb": {true, "TERM=dumb", false}, "no TERM": {true, "", false},
	} {
		env := &Env{Terminal: c.terminal, Getenv: func(name string) string {
			for v := range strings.FieldsSeq(c.vars) {
				if value, is := strings.CutPrefix(v, name+"="); is {
					return value
				}
			}
			return ""
		}}
		if got := env.coloured(); got != c.want {
			t.Errorf("%s: colours %v", name, got)
		}
	}
}

// A suggested command that is too wide for the terminal is broken as a shell reads it.
func TestSuggestion(t *testing.T) {
	env := &Env{Terminal: true, Width: func() int { return 40 }}
	const line = "Next, measure your server: tacho bench --base-url http://HOST:PORT --request-rate 8"
	if got, want := env.suggestion(line), "Next, measure your server:\n  tacho bench \\\n      --base-url http://HOST:PORT \\\n      --request-rate 8"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	env.Terminal = false
	if got := env.suggestion(line); got != line {
		t.Errorf("without a terminal: %q", got)
	}
}

// Messages break on a terminal only.
func TestMessagesFitTheTerminal(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out, errs strings.Builder
		Main(&Env{
			Args: []string{"bench", "--no-such-flag"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Terminal: terminal,
			Getenv: func(string) string { return "" }, Width: func() int { return 31 }, Height: func() int { return 24 },
		})
		if lines := strings.Count(errs.String(), "\n"); lines != map[bool]int{true: 3, false: 1}[terminal] {
			t.Errorf("terminal %v: %d lines: %s", terminal, lines, errs.String())
		}
	}
}
