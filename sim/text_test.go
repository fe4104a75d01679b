package sim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVocabularyIsABijection(t *testing.T) {
	seen := map[string]bool{}
	for id := range int32(vocabSize) {
		text := tokenText(id)
		if seen[text] {
			t.Fatalf("two tokens are %q", text)
		}
		seen[text] = true
		if got := encode(text); len(got) != 1 || got[0] != id {
			t.Fatalf("token %d is %q, which encodes as %v", id, text, got)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("one two\tthree\u00a0four \xff\xfe five", " a")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, want := countTokens(a), len(strings.Fields(a)); got != want {
			t.Fatalf("%q has %d tokens, want %d", a, got, want)
		}
		if got, want := countTokens(a+" "+b), countTokens(a)+countTokens(b); got != want {
			t.Fatalf("joined: %d tokens, want %d", got, want)
		}
		ids := encode(a)
		if diff := cmp.Diff(ids, encode(decode(ids))); diff != "" {
			t.Fatalf("decoding changed the tokens:\n%s", diff)
		}
		end := 0
		for _, tok := range tgiTokens(a) {
			if tok.Start != end || a[tok.Start:tok.Stop] != tok.Text {
				t.Fatalf("token %+v after %d", tok, end)
			}
			end = tok.Stop
		}
	})
}
