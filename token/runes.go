package token

import (
	"sync"
	"unicode"
)

// isSpace is the White_Space property.
func isSpace(r rune) bool { return unicode.Is(unicode.White_Space, r) }

// wordRunes is what a word consists of where no pattern says it: as \w in a
// pattern, but with the joiners and without the Latin-1 numbers.
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
	// Unicode 17, which this one test of the reference implementation knows.
	s.add(0x11de0, 0x11de9, 1)
	s.add(0x16ff4, 0x16ff6, 1)
	return s
})

// isNumber is category N.
func isNumber(r rune) bool { return numberRunes().has(r) }

// isPunctuation is what the pre-tokenizers that split at punctuation go by:
// the Unicode category, and every ASCII character that is neither a letter, a
// digit, a space nor a control.
func isPunctuation(r rune) bool {
	if r < 0x80 {
		return r > ' ' && r < 0x7f && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if r == 0x166d || r == 0x111c9 { // punctuation in the older table, symbol and mark since
		return true
	}
	return unicode.Is(unicode.P, r) && !unicode.Is(oldPunctuationGaps, r)
}

// byteRunes maps each byte to the visible character that stands for it in a
// byte-level vocabulary: itself where it is printable, otherwise the next
// character from U+0100 on.
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

// runeBytes is the inverse of byteRunes, -1 for other characters.
var runeBytes = func() (m [324]int16) {
	for i := range m {
		m[i] = -1
	}
	for b, r := range byteRunes {
		m[r] = int16(b)
	}
	return m
}()

// toByteLevel spells bytes as a byte-level vocabulary does.
func toByteLevel(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = byteRunes[s[i]]
	}
	return string(out)
}

// appendFromByteLevel appends the bytes a token of a byte-level vocabulary
// stands for; false, and nothing appended, when it has other characters.
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
