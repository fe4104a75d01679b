package token

import (
	"strings"
	"unicode/utf8"
)

// addedToken is a token matched in the text before normalization and pre-tokenization: a
// special token, or a piece of text added to the vocabulary after training.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
	decoded    string // text used by Decode; normalized if Normalized is set
}

// addedMatcher finds added tokens in a text. The leftmost match wins; if several tokens
// start at the same byte, the longest wins.
type addedMatcher struct {
	tokens []addedToken
	starts [256]bool // first bytes of all tokens
	trie   *trie     // maps a text to its index in tokens
}

// newAddedMatcher builds a matcher that finds tokens[i] by texts[i].
func newAddedMatcher(tokens []addedToken, texts []string) *addedMatcher {
	m := &addedMatcher{tokens: tokens, trie: newTrie()}
	for i, text := range texts {
		if text != "" {
			m.starts[text[0]] = true
			m.trie.insert(text, int32(i))
		}
	}
	return m
}

// next returns the index, start and end of the first token at or after i. The index is
// noToken if there is no match.
func (m *addedMatcher) next(text string, i int) (token int32, start, end int) {
	for ; i < len(text); i++ {
		if m.starts[text[i]] {
			if token, n := m.trie.longest(text[i:]); n > 0 {
				return token, i, i + n
			}
		}
	}
	return noToken, len(text), len(text)
}

// split calls found for each added token and gap for the text between added tokens.
func (m *addedMatcher) split(text string, gap func(start, end int), found func(t *addedToken)) {
	done := 0
	for i := 0; i < len(text); {
		index, start, end := m.next(text, i)
		if index == noToken {
			break
		}
		i = end // a rejected match still consumes its text
		t := &m.tokens[index]
		if t.SingleWord && !isWholeWord(text, start, end) {
			continue
		}
		if t.LStrip {
			start = max(len(strings.TrimRightFunc(text[:start], isSpace)), done)
		}
		if t.RStrip {
			end += len(text[end:]) - len(strings.TrimLeftFunc(text[end:], isSpace))
		}
		if done < start {
			gap(done, start)
		}
		found(t)
		done = end
	}
	if done < len(text) {
		gap(done, len(text))
	}
}

// isWholeWord reports whether no word character is adjacent to text[start:end].
func isWholeWord(text string, start, end int) bool {
	before, size := utf8.DecodeLastRuneInString(text[:start])
	if size > 0 && isWordRune(before) {
		return false
	}
	after, size := utf8.DecodeRuneInString(text[end:])
	return size == 0 || !isWordRune(after)
}
