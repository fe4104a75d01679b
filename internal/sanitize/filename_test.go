package sanitize

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestFileName(t *testing.T) {
	long := strings.Repeat("m", 4000)
	for in, want := range map[string]string{
		"openai-infqps-Qwen3-32B-20251113-171628.json": "openai-infqps-Qwen3-32B-20251113-171628.json",
		"../../x":              "..-..-x",
		`a\b/c:d*e`:            "a-b-c-d-e",
		"größe 模型":             "größe-模型",
		"a\x1b[2J\a\nb\u202ec": "a-2J-b-c",
		"a\xff\xfeb":           "a-b",
		"":                     "",
		long + "-1.json":       long[:172] + "..." + long[:73] + "-1.json",
	} {
		if got := FileName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("a\x1b/\u202e\\..")
	f.Add(strings.Repeat("模", 200))
	f.Fuzz(func(t *testing.T, s string) {
		name := FileName(s)
		if len(name) > MaxFileName || !utf8.ValidString(name) || strings.ContainsAny(name, `/\:`) || filepath.Base("x"+name) != "x"+name {
			t.Errorf("%q: %q", s, name)
		}
		for _, r := range name {
			if !unicode.IsPrint(r) {
				t.Errorf("%q: %q has %q", s, name, r)
			}
		}
		if FileName(name) != name {
			t.Errorf("%q: %q, then %q", s, name, FileName(name))
		}
	})
}
