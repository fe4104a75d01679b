package token

import (
	"sync"
	"unicode"
)

// isSpace reports whether r has the White_Space property.
func isSpace(r rune) bool { return unicode.Is(unicode.White_Space, r) }

// wordRunes are the word characters outside patterns: \w with the joiners and without the
// Latin-1 numbers.
var wordRunes = sync.OnceValue(func() *runeSet {
	numbers, s := &runeSet{}, &runeSet{}
	numbers.addCategory("No")
	numbers.invert()
	s.addWord()
	s.intersect(numbers)
	s.addTable(unicode.Other_Alphabetic)
	s.addTable(unicode.Join_Control)
	return s
})

func isWordRune(r rune) bool { return wordRunes().has(r) }

var numberRunes = sync.OnceValue(func() *runeSet {
	s := &runeSet{}
	s.addCategory("N")
	// This test of the reference implementation uses Unicode 17.
	s.add(0x11de0, 0x11de9, 1)
	s.add(0x16ff4, 0x16ff6, 1)
	return s
})

// isNumber reports whether r is in category N.
func isNumber(r rune) bool { return numberRunes().has(r) }

// isPunctuation reports whether r counts as punctuation for the pre-tokenizers: Unicode
// category P, and every ASCII character except letters, digits, space and controls.
func isPunctuation(r rune) bool {
	if r < 0x80 {
		return r > ' ' && r < 0x7f && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if r == 0x166d || r == 0x111c9 { // punctuation in the older table; now a symbol and a mark
		return true
	}
	return unicode.Is(unicode.P, r) && !unicode.Is(oldPunctuationGaps, r)
}

// byteRunes maps each byte to a visible character of the byte-level alphabet: the byte
// itself if printable, otherwise the next character from U+0100.
var byteRunes = func() (m [256]rune) {
	next := rune(256)
	for b := range m {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			m[b] = rune(b)
		} else {
			m[b] = next
			next++
		}
	}
	return m
}()

// runeBytes is the inverse of byteRunes, with -1 for other characters.
var runeBytes = func() (m [324]int16) {
	for i := range m {
		m[i] = -1
	}
	for b, r := range byteRunes {
		m[r] = int16(b)
	}
	return m
}()

// toByteLevel converts bytes to the byte-level alphabet.
func toByteLevel(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = byteRunes[s[i]]
	}
	return string(out)
}

// appendFromByteLevel appends the bytes of a byte-level token. It returns false and
// appends nothing if token has characters outside the byte-level alphabet.
func appendFromByteLevel(dst []byte, token string) ([]byte, bool) {
	from := len(dst)
	for _, r := range token {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			return dst[:from], false
		}
		dst = append(dst, byte(runeBytes[r]))
	}
	return dst, true
}
