package cli

import (
	"regexp"
	"strings"
	"testing"
)

// Colours repeat words: without them the text is the same.
func TestPaint(t *testing.T) {
	escapes := regexp.MustCompile(`\x1b\[[\d;]*m`)
	for text, want := range map[string]string{
		"tacho: no such file\n":          "\x1b[1;31mtacho:\x1b[0m no such file\n",
		"use tacho: it is free\n":        "use tacho: it is free\n",
		"Verdict: VALID\n":               "Verdict: \x1b[32mVALID\x1b[0m\n",
		"INVALID at 5: late\n":           "\x1b[1;31mINVALID\x1b[0m at 5: late\n",
		"DEGRADED: Holds\n":              "\x1b[33mDEGRADED\x1b[0m: Holds\n",
		"TTFT 1 2 +9% p<0.001 worse\n":   "TTFT 1 2 +9% p<0.001 \x1b[1;31mworse\x1b[0m\n",
		"TTFT 2 1 -9% p=0.01 better\nx":  "TTFT 2 1 -9% p=0.01 \x1b[32mbetter\x1b[0m\nx",
		"better than worse, invalid\n":   "better than worse, invalid\n",
		"FAILED ttft.p99>1ms: is 2 ms\n": "\x1b[1;31mFAILED\x1b[0m ttft.p99>1ms: is 2 ms\n",
	} {
		got := paint(text)
		if got != want {
			t.Errorf("%q is painted as %q", text, got)
		}
		if escapes.ReplaceAllString(got, "") != text {
			t.Errorf("the colours of %q change its text", text)
		}
	}
}

// Only a terminal that can show colours gets them, and only if NO_COLOR is not set.
func TestPainter(t *testing.T) {
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
		if got := env.painter() != nil; got != c.want {
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

// Messages on a terminal break between words. A line of JSON stays whole, and so does
// everything without a terminal.
func TestMessagesFitTheTerminal(t *testing.T) {
	const long = "tacho: the server at http://127.0.0.1:8000 did not answer"
	for text, want := range map[string]string{
		long + "\nshort\n":                "tacho: the server at\n  http://127.0.0.1:8000 did not\n  answer\nshort\n",
		"  " + long:                       "  tacho: the server at\n    http://127.0.0.1:8000 did\n    not answer",
		`{"text": "` + long + `"}` + "\n": `{"text": "` + long + `"}` + "\n",
	} {
		if got := wrapLines(text, 31); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
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
