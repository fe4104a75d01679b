package token

import (
	"strings"
	"unicode/utf8"
)

// A model turns one word, as the pre-tokenizer cut it, into ids.
type model interface {
	// appendWord appends the ids of word to dst.
	appendWord(dst []int32, word string) []int32
}

// noToken marks the absence of an id.
const noToken = int32(-1)

// bpe is byte-pair encoding: the symbols of a word (bytes for a byte-level
// vocabulary, characters otherwise) merge pair by pair, best rank first.
type bpe struct {
	vocab  *vocabulary
	merges *mergeTable
	bpeOptions
	byteLevel bool
	unk       int32
	// single is the id of each byte as a symbol: of the byte itself at byte
	// level, of the ASCII character otherwise.
	single [256]int32
	// fallback is the id of <0xNN> for each byte, used when all bytes of a
	// character have one.
	fallback [256]int32
	// uncut holds the characters after which a word may not be cut before
	// metaspace; nil means words are never cut.
	uncut map[rune]bool
	cache wordCache
}

// bpeOptions are the settings of a BPE model as its file has them.
type bpeOptions struct {
	ContinuingPrefix string `json:"continuing_subword_prefix"`
	EndSuffix        string `json:"end_of_word_suffix"`
	FuseUnk          bool   `json:"fuse_unk"`
	ByteFallback     bool   `json:"byte_fallback"`
	IgnoreMerges     bool   `json:"ignore_merges"`
}

// metaspace stands for a space in vocabularies that follow SentencePiece.
const metaspace = "▁"

// newBPE prepares a model; unk is noToken where the file names none.
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

// findUncut collects the characters that stand before metaspace inside some
// token. After every other character a merge can never cross into a following
// metaspace, so a text may be cut there and its parts encoded, and cached,
// each on its own, with the same result. It is nil where cuts are not safe.
func (m *bpe) findUncut() map[rune]bool {
	if m.find(metaspace) == noToken {
		return nil // an unknown metaspace could fuse with the unknown before it
	}
	// A byte token is not spelled as its text, so what is inside the tokens it
	// merges into cannot be seen.
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

// cutBefore says whether word may be cut before the metaspace at i > 0.
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

// appendMerged splits word into symbols at the end of dst and merges them there.
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

// appendAffixed is appendSymbols for vocabularies that mark where in the word
// a symbol stands.
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

// appendSymbol appends one symbol, or its bytes, or notes that it is unknown.
// The pending unknown is appended when the next known symbol comes, so that
// neighbours can fuse; a vocabulary without an unknown token drops the symbol.
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
