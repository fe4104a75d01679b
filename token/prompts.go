package token

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxPromptWords is the maximum number of different words in prompts. It is a power
	// of two, so that a bit mask can pick a word.
	maxPromptWords = 1 << 12
	// minPromptWords is the minimum number of different words for a prompt to count as
	// random.
	minPromptWords = 1 << 4
	// proofPrompts and proofTokens are the number and length of the prompts NewPrompts
	// checks.
	proofPrompts, proofTokens = 32, 512
)

// Prompts generates random prompts with an exact number of tokens without counting each
// prompt. A prompt consists of words that are always a single token. Prompt i depends
// only on the seed and i. Prompts is safe for concurrent use.
type Prompts struct {
	seed   uint64
	firsts []promptWord // may start a text
	words  []promptWord // each starts with a space; the length is a power of two
}

type promptWord struct {
	text string
	id   int32
}

// NewPrompts picks the words and encodes some prompts to check them. It returns an error
// if the vocabulary has too few such words; use Fit then.
func NewPrompts(t *Tokenizer, seed uint64) (*Prompts, error) {
	p := &Prompts{seed: seed}
	anchor, ok := promptAnchor(t)
	if !ok {
		return nil, errors.New("exact prompts: no common word is a single token of this tokenizer; fit each text by counting")
	}
	seen := map[string]bool{}
	for id := range int32(t.VocabSize()) {
		word := t.plainWord(id)
		if word == "" || seen[word] {
			continue
		}
		seen[word] = true
		if w, ok := anchor.extends(t, " "+word); ok && len(p.words) < maxPromptWords {
			p.words = append(p.words, w)
		}
		if ids := t.Encode(word+anchor.text, false); len(ids) == 2 && ids[1] == anchor.id && len(p.firsts) < maxPromptWords {
			p.firsts = append(p.firsts, promptWord{word, ids[0]})
		}
		if len(p.words) == maxPromptWords && len(p.firsts) == maxPromptWords {
			break
		}
	}
	size := minPromptWords
	for 2*size <= len(p.words) {
		size *= 2
	}
	if len(p.words) < size || len(p.firsts) == 0 {
		return nil, fmt.Errorf("exact prompts: only %d words are single tokens of this tokenizer; fit each text by counting", len(p.words))
	}
	p.words = p.words[:size]
	return p, p.prove(t)
}

// isPlainWord reports whether s is a lower-case word of 2 to 12 ASCII letters, which no
// pre-tokenizer splits.
func isPlainWord(s string) bool {
	if len(s) < 2 || len(s) > 12 {
		return false
	}
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return true
}

// promptAnchor returns a word with a leading space that is a single token after another
// word.
func promptAnchor(t *Tokenizer) (promptWord, bool) {
	start := promptWord{text: "a"}
	for id := range int32(t.VocabSize()) {
		if word := t.plainWord(id); word != "" {
			if w, ok := start.extends(t, " "+word); ok {
				return w, true
			}
		}
	}
	return promptWord{}, false
}

// plainWord returns a token's text without leading white space if it is a plain word,
// otherwise "".
func (t *Tokenizer) plainWord(id int32) string {
	word := strings.TrimPrefix(strings.TrimSpace(t.Decode([]int32{id}, true)), metaspace)
	if !isPlainWord(word) {
		return ""
	}
	return word
}

// extends reports whether text adds exactly one token after w, and returns the token.
func (w promptWord) extends(t *Tokenizer, text string) (promptWord, bool) {
	before := t.Encode(w.text, false)
	after := t.Encode(w.text+text, false)
	n := len(before)
	if len(after) != n+1 || !slices.Equal(after[:n], before) {
		return promptWord{}, false
	}
	return promptWord{text, after[n]}, true
}

// prove encodes some prompts. It fails if a word is a single token only after certain
// words.
func (p *Prompts) prove(t *Tokenizer) error {
	for i := range uint64(proofPrompts) {
		text := p.Text(i, proofTokens)
		if got, want := t.Encode(text, false), p.IDs(i, proofTokens); !slices.Equal(got, want) {
			return fmt.Errorf("exact prompts: a prompt of %d tokens encodes to %d; fit each text by counting", len(want), len(got))
		}
	}
	return nil
}

// Text returns prompt i with n tokens, not counting special tokens around the text.
func (p *Prompts) Text(i uint64, n int) string { return string(p.appendText(nil, i, n)) }

// appendText appends prompt i with n tokens to dst.
func (p *Prompts) appendText(dst []byte, i uint64, n int) []byte {
	p.each(i, n, func(w *promptWord) { dst = append(dst, w.text...) })
	return dst
}

// IDs returns the token ids of prompt i, for servers that accept ids instead of text.
func (p *Prompts) IDs(i uint64, n int) []int32 {
	ids := make([]int32, 0, max(n, 0))
	p.each(i, n, func(w *promptWord) { ids = append(ids, w.id) })
	return ids
}

// each calls word for the n words of prompt i.
func (p *Prompts) each(i uint64, n int, word func(w *promptWord)) {
	if n <= 0 {
		return
	}
	r := splitMix{p.seed ^ mix(i+1)}
	word(&p.firsts[r.next()%uint64(len(p.firsts))])
	mask := uint64(len(p.words) - 1)
	for n--; n > 0; {
		// One random number yields several words.
		for bits, left := r.next(), 64/12; left > 0 && n > 0; left, n = left-1, n-1 {
			word(&p.words[bits&mask])
			bits >>= 12
		}
	}
}

// splitMix is the SplitMix64 generator. Its output is well distributed even for similar
// seeds.
type splitMix struct{ state uint64 }

func (r *splitMix) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
