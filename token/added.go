package token

import (
	"strings"
	"unicode/utf8"
)

// An addedToken is a token that is found in the text before anything else is
// done to it: a special token, or a piece of text a model was given later.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
	decoded    string // its text when it is decoded: normalized, if that is how it is found
}

// An addedMatcher finds added tokens in a text, the leftmost first and the
// longest among those that start at the same place.
type addedMatcher struct {
	tokens []addedToken
	starts [256]bool // bytes that some token starts with
	trie   *trie     // to the index of the token
}

// newAddedMatcher takes the tokens and the text to look for for each.
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

// next finds the first token at or after i: its index and where it starts and
// ends. The index is noToken when there is none.
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

// split calls gap for the text between added tokens and found for each of them.
func (m *addedMatcher) split(text string, gap func(start, end int), found func(t *addedToken)) {
	done := 0
	for i := 0; i < len(text); {
		index, start, end := m.next(text, i)
		if index == noToken {
			break
		}
		i = end // a match that is rejected uses up its text all the same
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

// isWholeWord says whether no word character touches text[start:end].
func isWholeWord(text string, start, end int) bool {
	before, size := utf8.DecodeLastRuneInString(text[:start])
	if size > 0 && isWordRune(before) {
		return false
	}
	after, size := utf8.DecodeRuneInString(text[end:])
	return size == 0 || !isWordRune(after)
}
