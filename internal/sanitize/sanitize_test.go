package sanitize

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain, größer, 日本 👩‍🚀\tx\n":    "plain, größer, 日本 👩‍🚀\tx\n",
		"dos\r\nlines\r\n":              "dos\r\nlines\r\n",
		"back\rto the start":            `back\rto the start`,
		"\x1b]0;owned\x07\x1b[2J":       `\x1b]0;owned\a\x1b[2J`,
		"a\x7fb\u009b31mc\u0085":        `a\u007fb\u009b31mc\u0085`,
		"eight bit \x9b31m, latin \xe4": `eight bit \x9b31m, latin ` + "\xe4",
		"file\u202egpj.exe\u2066\u200f": `file\u202egpj.exe\u2066\u200f`,
		"line\u2028line":                `line\u2028line`,
		"\x00":                          `\x00`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q is shown as %q, not %q", in, got, want)
		}
	}
	if got := Line("a\nb\tc\r\nd\x1b \xff"); got != `a\nb\tc\r\nd\x1b \xff` {
		t.Errorf("one line: %q", got)
	}
}

// JSON stays valid and keeps its meaning.
func TestTextOfJSON(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x3000) {
		all.WriteRune(r)
	}
	b := must.Get(json.MarshalIndent(map[string]string{"x": all.String()}, "", "\t"))(t)
	var got map[string]string
	if err := json.Unmarshal([]byte(Text(string(b))), &got); err != nil || got["x"] != all.String() {
		t.Errorf("%v", err)
	}
}
