package token

import "unicode/utf8"

// wordPiece takes the longest token at each offset of a word. If no token matches at some
// offset, the complete word is unknown.
type wordPiece struct {
	vocab    *vocabulary
	prefix   string // prefix of tokens that continue a word
	maxRunes int
	unk      int32
}

// appendWord implements model.
func (m *wordPiece) appendWord(dst []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > m.maxRunes {
		return append(dst, m.unk)
	}
	from := len(dst)
	for start := 0; start < len(word); {
		id, end := m.longest(word, start)
		if end == start {
			return append(dst[:from], m.unk)
		}
		dst = append(dst, id)
		start = end
	}
	return dst
}

func (m *wordPiece) longest(word string, start int) (id int32, end int) {
	for end = len(word); end > start; {
		text := word[start:end]
		if start > 0 {
			text = m.prefix + text
		}
		if id, ok := m.vocab.lookup(text); ok {
			return id, end
		}
		_, size := utf8.DecodeLastRuneInString(word[start:end])
		end -= size
	}
	return noToken, start
}

// wordLevel only knows complete words.
type wordLevel struct {
	vocab *vocabulary
	unk   int32
}

// appendWord implements model.
func (m *wordLevel) appendWord(dst []int32, word string) []int32 {
	if id, ok := m.vocab.lookup(word); ok {
		return append(dst, id)
	}
	return append(dst, m.unk)
}
