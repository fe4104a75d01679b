package token

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"

	"github.com/tacho-bench/tacho/internal/must"
)

// knownPatterns are the patterns of real tokenizers.
var knownPatterns = map[string]string{
	"gpt2":   byteLevelPattern,
	"llama3": cl100kPattern,
	"qwen":   qwenPattern,
	"o200k":  o200kPattern,
	"nemo": `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"deepseek 1": `\p{N}{1,3}`,
	"deepseek 2": `[一-龥぀-ゟ゠-ヿ]+`,
	"deepseek 3": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
	"clip":       `'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`,
}

// oldText returns random characters on which both Unicode tables agree.
func oldText(r *rand.Rand) string {
	alphabet := []rune(" \t\n\r\u00a0\u3000aAzZéÉßſǅʰ中ひカ한ا१12½٣²'’!?-_/\\$€+~`\u0301\u0903😀İı")
	var b strings.Builder
	for range r.IntN(24) {
		b.WriteRune(alphabet[r.IntN(len(alphabet))])
	}
	for _, part := range []string{"'s", "'LL", "  ", "\n\n", "'Re"} {
		if r.IntN(6) == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// TestPatternSameAsGeneralEngine checks that a pattern finds the same matches as a
// general engine.
func TestPatternSameAsGeneralEngine(t *testing.T) {
	for name, expr := range knownPatterns {
		t.Run(name, func(t *testing.T) {
			p := must.Get(parsePattern(expr))(t)
			re := regexp2.MustCompile(expr, regexp2.Unicode)
			r := rand.New(rand.NewPCG(3, 4))
			for range 3000 {
				text := oldText(r)
				w := newWork(len(text))
				got, want := p.spans(&w, nil, text), regexpSpans(re, &w, nil, text)
				if !slices.Equal(got, want) {
					t.Fatalf("%q: %v, want %v", text, got, want)
				}
			}
		})
	}
}

func TestPatternBeyond(t *testing.T) {
	for _, expr := range []string{
		`(a|b)+`, `(?<=a)b`, `a(?=b)`, `\bword`, `a*?`, `.`, `^a`, `a{2`, `[a`, `(?i:a+)b`, `\p{Nope}`, `[z-a]`, `\`, `(a`, `a{1,3}+`, `[[:alpha:]]`,
	} {
		if _, err := parsePattern(expr); !errors.Is(err, errBeyondPattern) {
			t.Errorf("%q: %v, want errBeyondPattern", expr, err)
		}
	}
}

func TestPatternClasses(t *testing.T) {
	for _, test := range []struct {
		expr, text string
		want       string // matches, separated by bars
	}{
		{`[\p{L}&&[^a-m]]+`, "abcxyz nop", "xyz|nop"},
		{`[^\s\d]+`, "ab 12 c3", "ab|c"},
		{`\p{^L}+`, "ab12c", "12"},
		{`(?i:k)`, "kK\u212a", "k|K|\u212a"},
		{`a++b`, "aab", "aab"},
		{`a++ab`, "aab", ""},
		{`x?$|y`, "xyx", "y|x"},
		{`(?:ab|a)c`, "ac abc", "ac|abc"},
		{`(?:ab|a)?bc`, "abbc abc bc", "abbc|abc|bc"},
		{`\w+`, "naïve_1 ½²\u200d", "naïve_1|½²"},
	} {
		p, err := parsePattern(test.expr)
		if err != nil {
			t.Errorf("%s: %v", test.expr, err)
			continue
		}
		var found []string
		for _, s := range p.spans(new(newWork(0)), nil, test.text) {
			if s.match {
				found = append(found, test.text[s.start:s.end])
			}
		}
		if got := strings.Join(found, "|"); got != test.want {
			t.Errorf("%s in %q: %q, want %q", test.expr, test.text, got, test.want)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, expr := range knownPatterns {
		f.Add(expr, "some 123 text\n")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		p, err := parsePattern(expr)
		if err != nil || len(text) > 1000 {
			return
		}
		end, w := 0, newWork(len(text))
		for _, s := range p.spans(&w, nil, text) {
			if s.start != end || s.end <= s.start {
				t.Fatalf("%q in %q: spans do not cover the text", expr, text)
			}
			end = s.end
		}
		if end != len(text) {
			t.Fatalf("%q in %q: spans end at %d", expr, text, end)
		}
	})
}

func TestBehaviors(t *testing.T) {
	for b, want := range map[behavior]string{
		removed: "a|b|c", isolated: "a|-|-|b|-|c", mergedWithPrevious: "a-|-|b-|c", mergedWithNext: "a|-|-b|-c", contiguous: "a|--|b|-|c",
	} {
		var got []string
		splitAt(findText("-"), b)(piece{text: "a--b-c"}, func(p piece) { got = append(got, p.text) })
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%s: %q, want %q", b, s, want)
		}
	}
}
