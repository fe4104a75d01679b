package token

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// charsMap is SentencePiece's character map: a double-array trie from byte sequences to
// offsets in a table of replacements.
type charsMap struct {
	units        []uint32
	replacements string // each ends with a zero byte
}

// parseCharsMap parses the binary form: the size of the trie in bytes, the trie, the
// replacements.
func parseCharsMap(b []byte) (*charsMap, error) {
	if len(b) < 4 {
		return nil, errors.New("truncated character map")
	}
	size := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if size > len(b) || size%4 != 0 || size == 0 {
		return nil, errors.New("truncated character map")
	}
	m := &charsMap{units: make([]uint32, size/4), replacements: string(b[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return m, nil
}

// These functions decode the parts of a trie unit.
func unitHasLeaf(u uint32) bool  { return u>>8&1 == 1 }
func unitValue(u uint32) uint32  { return u &^ (1 << 31) }
func unitLabel(u uint32) uint32  { return u & (1<<31 | 0xff) }
func unitOffset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

// prefixes calls found with the length and replacement of each key that is a prefix of s,
// shortest first, until found returns false.
func (m *charsMap) prefixes(s string, found func(length int, replacement string) bool) {
	node := unitOffset(m.units[0])
	for i := range len(s) {
		c := uint32(s[i])
		node ^= c
		if c == 0 || int(node) >= len(m.units) {
			return
		}
		unit := m.units[node]
		if unitLabel(unit) != c {
			return
		}
		node ^= unitOffset(unit)
		if int(node) >= len(m.units) {
			return
		}
		if !unitHasLeaf(unit) {
			continue
		}
		at := int(unitValue(m.units[node]))
		if at > len(m.replacements) {
			return
		}
		replacement, _, _ := strings.Cut(m.replacements[at:], "\x00")
		if !found(i+1, replacement) {
			return
		}
	}
}

// shortest returns the replacement of the shortest key that is a prefix of s.
func (m *charsMap) shortest(s string) (replacement string, ok bool) {
	m.prefixes(s, func(_ int, r string) bool {
		replacement, ok = r, true
		return false
	})
	return replacement, ok
}

// longest returns the replacement of the longest key that is a prefix of s.
func (m *charsMap) longest(s string) (length int, replacement string) {
	m.prefixes(s, func(n int, r string) bool {
		length, replacement = n, r
		return true
	})
	return length, replacement
}

// normalizeClusters applies the map like Hugging Face: a short grapheme cluster is
// replaced as a whole if one of its prefixes has a replacement. Otherwise each character
// is replaced separately.
func (m *charsMap) normalizeClusters(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for s != "" {
		n := clusterLength(s)
		cluster := s[:n]
		s = s[n:]
		if n <= maxWholeCluster {
			if r, ok := m.shortest(cluster); ok {
				b.WriteString(r)
				continue
			}
		}
		for i := 0; i < n; {
			size := runeSize(cluster, i)
			char := cluster[i : i+size]
			if r, ok := m.shortest(char); ok {
				b.WriteString(r)
			} else {
				b.WriteString(char)
			}
			i += size
		}
	}
	return b.String()
}

// maxWholeCluster is the maximum length in bytes of a cluster looked up as a whole.
const maxWholeCluster = 5

// clusterLength returns the length of the grapheme cluster at the start of s. The length
// is exact up to maxWholeCluster bytes. Longer clusters are split anyway, so
// clusterLength does not join flags, Hangul and emoji sequences, which are all longer.
func clusterLength(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	r, n := utf8.DecodeRuneInString(s)
	if breaksAlways(r) {
		return n
	}
	for prepended := isPrepend(r); n < len(s); {
		next, size := utf8.DecodeRuneInString(s[n:])
		if !isExtender(next) && (!prepended || breaksAlways(next)) {
			break
		}
		prepended = prepended && isPrepend(next)
		n += size
	}
	return n
}

// breaksAlways reports whether r is CR, LF or Control, which never join a cluster.
func breaksAlways(r rune) bool {
	if isPrepend(r) || r == 0x200c || r == 0x200d || r >= 0xe0020 && r <= 0xe007f {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) ||
		r == 0x180e || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.M, r) && !unicode.Is(unicode.L, r)
}

// isExtender reports whether r is Extend or SpacingMark and attaches to the character
// before it.
func isExtender(r rune) bool {
	if r < 0x300 {
		return false
	}
	switch {
	case r == 0x200c, r == 0x200d, r == 0xe33, r == 0xeb3, r == 0xff9e, r == 0xff9f,
		r >= 0x1f3fb && r <= 0x1f3ff, r >= 0xe0020 && r <= 0xe007f:
		return true
	}
	return unicode.Is(unicode.M, r) && !unicode.Is(detachedMarks, r)
}

// detachedMarks are spacing marks that do not attach.
var detachedMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x102b, Hi: 0x102c, Stride: 1},
		{Lo: 0x1038, Hi: 0x1038, Stride: 1},
		{Lo: 0x1062, Hi: 0x1064, Stride: 1},
		{Lo: 0x1067, Hi: 0x106d, Stride: 1},
		{Lo: 0x1083, Hi: 0x1083, Stride: 1},
		{Lo: 0x1087, Hi: 0x108c, Stride: 1},
		{Lo: 0x108f, Hi: 0x108f, Stride: 1},
		{Lo: 0x109a, Hi: 0x109c, Stride: 1},
		{Lo: 0x1a61, Hi: 0x1a61, Stride: 1},
		{Lo: 0x1a63, Hi: 0x1a64, Stride: 1},
		{Lo: 0xaa7b, Hi: 0xaa7d, Stride: 2},
	},
	R32: []unicode.Range32{{Lo: 0x11720, Hi: 0x11721, Stride: 1}},
}

// isPrepend reports whether r attaches to the character after it.
func isPrepend(r rune) bool { return unicode.Is(prependRunes, r) }

var prependRunes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x600, Hi: 0x605, Stride: 1},
		{Lo: 0x6dd, Hi: 0x6dd, Stride: 1},
		{Lo: 0x70f, Hi: 0x70f, Stride: 1},
		{Lo: 0x890, Hi: 0x891, Stride: 1},
		{Lo: 0x8e2, Hi: 0x8e2, Stride: 1},
		{Lo: 0xd4e, Hi: 0xd4e, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x110bd, Hi: 0x110cd, Stride: 16},
		{Lo: 0x111c2, Hi: 0x111c3, Stride: 1},
		{Lo: 0x1193f, Hi: 0x11941, Stride: 2},
		{Lo: 0x11a3a, Hi: 0x11a3a, Stride: 1},
		{Lo: 0x11a84, Hi: 0x11a89, Stride: 1},
		{Lo: 0x11d46, Hi: 0x11d46, Stride: 1},
		{Lo: 0x11f02, Hi: 0x11f02, Stride: 1},
	},
}

func newPrecompiledNormalizer(c component) (normalizer, error) {
	var o struct {
		Map string `json:"precompiled_charsmap"`
	}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(o.Map)
	if err != nil {
		return nil, c.errorf("precompiled_charsmap: %w", err)
	}
	m, err := parseCharsMap(raw)
	if err != nil {
		return nil, c.errorf("precompiled_charsmap: %w", err)
	}
	return plain(m.normalizeClusters), nil
}
