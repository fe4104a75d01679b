package token

import (
	"context"
	"unicode/utf8"
)

// Cut returns a prefix of text with n tokens, and its number of tokens when encoded
// alone. The count differs from n if text is shorter or if no prefix has exactly n
// tokens; then Cut returns the nearest prefix it found.
func (t *Tokenizer) Cut(text string, n int) (string, int, error) {
	ids := t.Encode(text, false)
	if err := t.Err(); err != nil {
		return "", 0, err
	}
	if len(ids) <= n {
		return text, len(ids), nil
	}
	// The text of the first n tokens usually encodes to n tokens again. If the cut falls
	// inside a character, or inside a word that merges differently on its own, search
	// around the cut.
	guess := commonPrefix(text, t.Decode(ids[:max(n, 0)], false))
	if count := len(t.Encode(guess, false)); count == n {
		return guess, count, nil
	}
	ends := runeEnds(text)
	units := utf8.RuneCountInString(guess)
	return Fit(context.Background(), t, n, units, func(units int) string {
		return text[:ends[min(units, len(ends)-1)]]
	})
}

// AtMost returns a prefix of text with at most n tokens, and its number of tokens. count
// is the number of tokens of the complete text and must be greater than n.
func AtMost(ctx context.Context, c Counter, text string, count, n int) (string, int, error) {
	ends := runeEnds(text)
	for want := n; want > 0; want-- {
		cut, got, err := Fit(ctx, c, want, (len(ends)-1)*want/count, func(units int) string { return text[:ends[min(units, len(ends)-1)]] })
		if err != nil || got <= n {
			return cut, got, err
		}
	}
	return "", 0, nil
}

// commonPrefix returns the longest common prefix of text and decoded, in complete
// characters.
func commonPrefix(text, decoded string) string {
	n := 0
	for n < len(decoded) && n < len(text) && decoded[n] == text[n] {
		n++
	}
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// runeEnds returns the end offsets of the prefixes of text with 0, 1, 2, ... characters.
func runeEnds(text string) []int {
	ends := make([]int, 1, len(text)+1)
	for i := 0; i < len(text); {
		i += runeSize(text, i)
		ends = append(ends, i)
	}
	return ends
}
