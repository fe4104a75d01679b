package token

import (
	"strings"
	"unicode/utf8"
)

// model turns one word from the pre-tokenizer into ids.
type model interface {
	// appendWord appends the ids of word to dst.
	appendWord(dst []int32, word string) []int32
}

// noToken means "no id".
const noToken = int32(-1)

// bpe implements byte-pair encoding. A word starts as symbols (bytes for a byte-level
// vocabulary, characters otherwise), and pairs of symbols merge in order of rank.
type bpe struct {
	vocab  *vocabulary
	merges *mergeTable
	bpeOptions
	byteLevel bool
	unk       int32
	// single maps each byte to its symbol's id: the byte itself at byte level, the ASCII
	// character otherwise.
	single [256]int32
	// fallback maps each byte to the id of <0xNN>. A character falls back to its bytes
	// only if all of its bytes have an id.
	fallback [256]int32
	// uncut holds the characters after which a word must not be cut before a metaspace.
	// If uncut is nil, words are never cut.
	uncut map[rune]bool
	cache wordCache
}

// bpeOptions are the settings of a BPE model in tokenizer.json.
type bpeOptions struct {
	ContinuingPrefix string `json:"continuing_subword_prefix"`
	EndSuffix        string `json:"end_of_word_suffix"`
	FuseUnk          bool   `json:"fuse_unk"`
	ByteFallback     bool   `json:"byte_fallback"`
	IgnoreMerges     bool   `json:"ignore_merges"`
}

// metaspace replaces the space character in SentencePiece vocabularies.
const metaspace = "▁"

// newBPE builds the model. unk is noToken if the file names no unknown token.
func newBPE(d *definition, byteLevel bool, unk int32) *bpe {
	m := &bpe{
		vocab: &d.vocab, merges: &d.merges, bpeOptions: d.Model.bpeOptions,
		byteLevel: byteLevel, unk: unk, fallback: d.byteTokens(),
	}
	for b := range 256 {
		m.single[b] = noToken
		if byteLevel || b < utf8.RuneSelf {
			m.single[b] = m.find(string([]byte{byte(b)}))
		}
	}
	if !byteLevel && m.ContinuingPrefix == "" && m.EndSuffix == "" {
		m.uncut = m.findUncut()
	}
	return m
}

func (m *bpe) find(text string) int32 {
	if id, ok := m.vocab.lookup(text); ok {
		return id
	}
	return noToken
}

// findUncut collects the characters followed by a metaspace inside some token. After
// every other character no merge can cross into a following metaspace. A text may be cut
// there, and encoding and caching the parts separately gives the same result. findUncut
// returns nil if cuts are not safe.
func (m *bpe) findUncut() map[rune]bool {
	if m.find(metaspace) == noToken {
		return nil // an unknown metaspace could fuse with an unknown symbol before it
	}
	// A byte token's name is not its text, so the text of tokens merged from byte tokens
	// is not known.
	if m.merges.involves(m.fallback[:]) {
		return nil
	}
	uncut := map[rune]bool{}
	for id := range int32(m.vocab.size()) {
		text := m.vocab.text(id)
		for i := 1; i+len(metaspace) <= len(text); i++ {
			if string(text[i:i+len(metaspace)]) == metaspace {
				r, _ := utf8.DecodeLastRune(text[:i])
				uncut[r] = true
			}
		}
	}
	return uncut
}

// appendWord implements model.
func (m *bpe) appendWord(dst []int32, word string) []int32 {
	if m.uncut == nil {
		return m.appendCached(dst, word)
	}
	for start, i := 0, 1; ; {
		next := strings.Index(word[min(i, len(word)):], metaspace)
		if next < 0 {
			return m.appendCached(dst, word[start:])
		}
		next += i
		if m.cutBefore(word, next) {
			dst = m.appendCached(dst, word[start:next])
			start = next
		}
		i = next + len(metaspace)
	}
}

// cutBefore reports whether word may be cut before the metaspace at i > 0.
func (m *bpe) cutBefore(word string, i int) bool {
	var r rune
	if c := word[i-1]; c < utf8.RuneSelf {
		r = rune(c)
	} else {
		r, _ = utf8.DecodeLastRuneInString(word[:i])
	}
	return !m.uncut[r]
}

func (m *bpe) appendCached(dst []int32, word string) []int32 {
	hash := hashString(word)
	if m.IgnoreMerges {
		if id, ok := m.vocab.lookupHash(word, hash); ok {
			return append(dst, id)
		}
	}
	if len(word) > maxCachedWord {
		return m.appendMerged(dst, word)
	}
	if ids, ok := m.cache.get(word, hash); ok {
		return append(dst, ids...)
	}
	from := len(dst)
	dst = m.appendMerged(dst, word)
	m.cache.put(word, hash, dst[from:])
	return dst
}

// appendMerged appends the symbols of word to dst and merges them in place.
func (m *bpe) appendMerged(dst []int32, word string) []int32 {
	from := len(dst)
	if m.ContinuingPrefix != "" || m.EndSuffix != "" {
		dst = m.appendAffixed(dst, word)
	} else {
		dst = m.appendSymbols(dst, word)
	}
	n := mergeSymbols(m.merges, dst[from:])
	return dst[:from+n]
}

// appendSymbols appends the ids of the single symbols of word.
func (m *bpe) appendSymbols(dst []int32, word string) []int32 {
	unknown := false // a pending unknown symbol
	for i := 0; i < len(word); {
		size := 1
		id := m.single[word[i]]
		if id == noToken && !m.byteLevel && word[i] >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(word[i:])
			id = m.find(word[i : i+size])
		}
		dst, unknown = m.appendSymbol(dst, word[i:i+size], id, unknown)
		i += size
	}
	if unknown {
		dst = append(dst, m.unk)
	}
	return dst
}

// appendAffixed is appendSymbols for vocabularies with a prefix for continuing symbols or
// a suffix for the last symbol of a word.
func (m *bpe) appendAffixed(dst []int32, word string) []int32 {
	unknown := false
	for i := 0; i < len(word); {
		size := 1
		if !m.byteLevel {
			_, size = utf8.DecodeRuneInString(word[i:])
		}
		text := word[i : i+size]
		if i > 0 {
			text = m.ContinuingPrefix + text
		}
		if i+size == len(word) {
			text += m.EndSuffix
		}
		dst, unknown = m.appendSymbol(dst, text, m.find(text), unknown)
		i += size
	}
	if unknown {
		dst = append(dst, m.unk)
	}
	return dst
}

// appendSymbol appends one symbol or its fallback bytes, or records the symbol as
// unknown. A pending unknown is appended together with the next known symbol, so that
// adjacent unknowns can fuse. If the vocabulary has no unknown token, the symbol is
// dropped.
func (m *bpe) appendSymbol(dst []int32, text string, id int32, unknown bool) ([]int32, bool) {
	switch {
	case id != noToken:
		if unknown {
			dst = append(dst, m.unk)
		}
		return append(dst, id), false
	case m.ByteFallback && m.hasFallback(text):
		for i := range len(text) {
			dst = append(dst, m.fallback[text[i]])
		}
		return dst, unknown
	case m.unk == noToken:
		return dst, false
	case unknown && !m.FuseUnk:
		dst = append(dst, m.unk)
	}
	return dst, true
}

func (m *bpe) hasFallback(text string) bool {
	for i := range len(text) {
		if m.fallback[text[i]] == noToken {
			return false
		}
	}
	return true
}
