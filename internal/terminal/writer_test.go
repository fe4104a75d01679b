package terminal

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
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

// Messages break between words. A line of JSON stays whole.
func TestWrapLines(t *testing.T) {
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
}

// A line is printed when it is complete, without secrets and control characters.
func TestWriter(t *testing.T) {
	var out strings.Builder
	w := &Writer{To: &out, Sweep: func(text string) string { return strings.ReplaceAll(text, "key", "***") }}
	for _, part := range []string{"the k", "ey\x1b[2J\nand", " more"} {
		must.Get(w.Write([]byte(part)))(t)
	}
	if got, want := out.String(), "the ***\\x1b[2J\n"; got != want {
		t.Errorf("before the end of a line: %q, want %q", got, want)
	}
	if err := w.Flush(); err != nil || !strings.HasSuffix(out.String(), "\nand more") {
		t.Errorf("%v, %q", err, out.String())
	}
}
