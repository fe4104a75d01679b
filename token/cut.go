package token

import (
	"context"
	"unicode/utf8"
)

// Cut returns a beginning of text that has n tokens when it is encoded on its
// own, and how many it has: n, unless text is shorter or no beginning of it
// has just n, when it is the nearest found.
func (t *Tokenizer) Cut(text string, n int) (string, int, error) {
	ids := t.Encode(text, false)
	if len(ids) <= n {
		return text, len(ids), nil
	}
	// The text of the first n tokens mostly has n tokens again. Where the cut
	// falls inside a character or a word that merges otherwise on its own, look
	// around it.
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

// AtMost returns a beginning of text that has at most n tokens, and how many it
// has. All of the text has count tokens, which is more.
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

// commonPrefix is the part of text that decoded starts with too, in whole
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

// runeEnds is where each beginning of text of 0, 1, 2, ... characters ends.
func runeEnds(text string) []int {
	ends := make([]int, 1, len(text)+1)
	for i := 0; i < len(text); {
		i += runeSize(text, i)
		ends = append(ends, i)
	}
	return ends
}
