package words

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVocabularyIsABijection(t *testing.T) {
	seen := map[string]bool{}
	for id := range int32(Size) {
		text := Text(id)
		if seen[text] {
			t.Fatalf("two tokens are %q", text)
		}
		seen[text] = true
		if got := Encode(text); len(got) != 1 || got[0] != id {
			t.Fatalf("token %d is %q, which encodes as %v", id, text, got)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("one two\tthree\u00a0four \xff\xfe five", " a")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, want := Count(a), len(strings.Fields(a)); got != want {
			t.Fatalf("%q has %d tokens, want %d", a, got, want)
		}
		if got, want := Count(a+" "+b), Count(a)+Count(b); got != want {
			t.Fatalf("joined: %d tokens, want %d", got, want)
		}
		ids := Encode(a)
		if diff := cmp.Diff(ids, Encode(Decode(ids))); diff != "" {
			t.Fatalf("decoding changed the tokens:\n%s", diff)
		}
	})
}
