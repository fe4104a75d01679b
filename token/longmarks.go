package token

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// graphemeJoiner is inserted by x/text into runs of more than 30 combining marks. The
// reference tokenizers do not insert it.
const graphemeJoiner = "\u034f"

// formOf normalizes s. It supports runs of combining marks of any length.
func formOf(f norm.Form, s string) string {
	out := f.String(s)
	if strings.Count(out, graphemeJoiner) == strings.Count(s, graphemeJoiner) {
		return out
	}
	return formByRune(f, s)
}

// formByRune normalizes in the three steps of the Unicode standard: decompose, reorder,
// compose. It is slow and only used for runs of marks too long for x/text.
func formByRune(f norm.Form, s string) string {
	apart := norm.NFD
	if f == norm.NFKC || f == norm.NFKD {
		apart = norm.NFKD
	}
	var runes []classedRune
	for _, r := range s {
		for _, part := range apart.String(string(r)) {
			runes = append(runes, classedRune{part, norm.NFC.PropertiesString(string(part)).CCC()})
		}
	}
	for start := 0; start < len(runes); start++ {
		end := start
		for end < len(runes) && runes[end].class != 0 {
			end++
		}
		slices.SortStableFunc(runes[start:end], func(a, b classedRune) int { return int(a.class) - int(b.class) })
		start = end
	}
	if f == norm.NFC || f == norm.NFKC {
		runes = compose(runes)
	}
	var b strings.Builder
	for _, r := range runes {
		b.WriteRune(r.rune)
	}
	return b.String()
}

// classedRune is a character and its canonical combining class.
type classedRune struct {
	rune
	class uint8
}

// compose combines each starter with the marks after it if a composition exists and no
// mark of the same class is in between.
func compose(runes []classedRune) []classedRune {
	out := runes[:0]
	starter := -1
	for _, r := range runes {
		last := len(out) - 1
		if starter >= 0 && (last == starter || out[last].class < r.class) {
			pair := norm.NFC.String(string([]rune{out[starter].rune, r.rune}))
			if joined, size := utf8.DecodeRuneInString(pair); size == len(pair) {
				out[starter].rune = joined
				continue
			}
		}
		out = append(out, r)
		if r.class == 0 {
			starter = len(out) - 1
		}
	}
	return out
}
