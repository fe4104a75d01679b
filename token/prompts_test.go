package token

import (
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// wordVocab returns a byte-level vocabulary with n three-letter words, each a single
// token with and without a leading space.
func wordVocab(n int) object {
	var merges []string
	for i := range n {
		a, b, c := string(rune('a'+i%8)), string(rune('i'+i/8%8)), string(rune('q'+i/64%8))
		merges = append(merges, a+" "+b, a+b+" "+c, "Ġ "+a+b+c)
	}
	slices.Sort(merges)
	merges = slices.Compact(merges)
	// Short tokens come first, because a merge needs both parts.
	slices.SortStableFunc(merges, func(x, y string) int { return len(x) - len(y) })
	return byteVocab(merges...)
}

func TestPromptsAreExact(t *testing.T) {
	tok := makeTokenizer(t, wordVocab(100), byteLevelFields)
	p := must.Get(NewPrompts(tok, 1))(t)
	seen := map[string]bool{}
	for i := range uint64(50) {
		for _, n := range []int{0, 1, 2, 7, 200} {
			text := p.Text(i, n)
			ids := tok.Encode(text, false)
			if len(ids) != max(n, 0) {
				t.Errorf("prompt %d: %d tokens, want %d", i, len(ids), n)
			}
			if !slices.Equal(ids, p.IDs(i, n)) {
				t.Errorf("prompt %d: ids and text differ", i)
			}
			if text != p.Text(i, n) {
				t.Errorf("prompt %d: two calls, two texts", i)
			}
			if n == 200 {
				seen[text] = true
			}
		}
	}
	words := map[string]bool{}
	for i := range uint64(50) {
		for word := range strings.FieldsSeq(p.Text(i, 200)) {
			words[word] = true
		}
	}
	if len(words) < len(p.words) {
		t.Errorf("%d different words of %d", len(words), len(p.words))
	}
	if len(seen) != 50 {
		t.Errorf("%d different prompts of 50", len(seen))
	}
	other := must.Get(NewPrompts(tok, 2))(t)
	if other.Text(0, 50) == p.Text(0, 50) {
		t.Error("another seed, the same prompt")
	}
}

func TestPromptsNeedWords(t *testing.T) {
	for name, tok := range map[string]*Tokenizer{
		"none": makeTokenizer(t, byteVocab(), byteLevelFields),
		"few":  makeTokenizer(t, wordVocab(3), byteLevelFields),
	} {
		if _, err := NewPrompts(tok, 1); err == nil || !strings.Contains(err.Error(), "exact prompts") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCut(t *testing.T) {
	for name, tok := range map[string]*Tokenizer{
		"byte level":    makeTokenizer(t, byteVocab("t h", "th e", "Ġ the", "e Ġ"), byteLevelFields),
		"sentencepiece": makeTokenizer(t, spmVocab(), spmFields),
	} {
		for kind, text := range corpus {
			total := len(tok.Encode(text, false))
			for _, n := range []int{0, 1, 2, 3, 5, 17, total - 1, total, total + 5} {
				if n < 0 {
					continue
				}
				got, count, err := tok.Cut(text, n)
				must.Do(t, err)
				if !strings.HasPrefix(text, got) {
					t.Errorf("%s, %s: %q is no beginning", name, kind, got)
				}
				if have := len(tok.Encode(got, false)); have != count {
					t.Errorf("%s, %s: %d tokens, said to be %d", name, kind, have, count)
				}
				// A character of several tokens cannot be cut.
				if want := min(n, total); distance(count, want) > 3 {
					t.Errorf("%s, %s: %d tokens, want %d", name, kind, count, want)
				}
			}
		}
	}
	tok := makeTokenizer(t, byteVocab(), byteLevelFields)
	if got, n, err := tok.Cut("hello world", 5); got != "hello" || n != 5 || err != nil {
		t.Errorf("%q, %d, %v", got, n, err)
	}
}
