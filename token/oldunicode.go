package token

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// The reference implementation uses tables of Unicode 8 and 9 for some decisions. To
// count the same tokens, the constants below list the characters assigned or reclassified
// since then, as hexadecimal ranges.

// newNonspacingMarks are characters of category Mn that accent stripping keeps.
const newNonspacingMarks = `
7fd 898-89f 8ca-8e1 9fe afa-aff b55 c04 c3c d00 d3b-d3c d81 eba ece 180f 1885-1886 1abf-1ace 1df6-1dfb
a82c a8c5 a8ff a9bd 10d24-10d27 10eab-10eac 10efd-10eff 10f46-10f50 10f82-10f85 11070 11073-11074 110c2
111c9 111cf 1123e 11241 1133b 11438-1143f 11442-11444 11446 1145e 1182f-11837 11839-1183a 1193b-1193c
1193e 11943 119d4-119d7 119da-119db 119e0 11a01-11a0a 11a33-11a38 11a3b-11a3e 11a47 11a51-11a56
11a59-11a5b 11a8a-11a96 11a98-11a99 11c30-11c36 11c38-11c3d 11c3f 11c92-11ca7 11caa-11cb0 11cb2-11cb3
11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 11d90-11d91 11d95 11d97 11ef3-11ef4
11f00-11f01 11f36-11f3a 11f40 11f42 13440 13447-13455 16f4f 16fe4 1cf00-1cf2d 1cf30-1cf46 1e000-1e006
1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef
1e944-1e94a`

// newMarks are characters of category M that StripAccents keeps.
const newMarks = `
7fd 898-89f 8ca-8d3 9fe afa-aff b55 c04 c3c cf3 d00 d3b-d3c d81 eba ece 1715 180f 1abf-1ace 1cf7
1df6-1dfa a82c a8ff 10d24-10d27 10eab-10eac 10efd-10eff 10f46-10f50 10f82-10f85 11070 11073-11074 110c2
11145-11146 111c9 111ce-111cf 11241 1133b 1145e 1182c-1183a 11930-11935 11937-11938 1193b-1193e 11940
11942-11943 119d1-119d7 119da-119e0 119e4 11a01-11a0a 11a33-11a39 11a3b-11a3e 11a47 11a51-11a5b
11a8a-11a99 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 11d8a-11d8e 11d90-11d91 11d93-11d97
11ef3-11ef6 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42 13440 13447-13455 16f4f 16f7f-16f87 16fe4
16ff0-16ff1 1cf00-1cf2d 1cf30-1cf46 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef`

// newFormats are characters of category Cf that text cleaning keeps.
const newFormats = `
890-891 8e2 110cd 13430-1343f`

// newCombining are characters whose combining class or composition the reference does not
// know. Its normalization treats them as letters.
const newCombining = `
7fd 898-89f 8ca-8d3 9fe c3c d3b-d3c eba 1715 1abf-1ace 1df6-1dfa a82c 10d24-10d27 10eab-10eac 10efd-10eff
10f46-10f50 10f82-10f85 11070 1133b 1145e 11839-1183a 11930 11938 1193d-1193e 11943 119e0 11a34 11a47 11a99
11d42 11d44-11d45 11d97 11f41-11f42 16ff0-16ff1 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef`

// newCompatibility are characters whose compatibility decomposition the reference does
// not apply.
const newCompatibility = `
32ff a7f2-a7f4 ab69 10781-10785 10787-107b0 107b2-107ba 1e030-1e06d 1f16c 1fbf0-1fbf9`

var (
	newCombiningRunes     = sync.OnceValue(func() *runeSet { return parseRanges(newCombining) })
	newCompatibilityRunes = sync.OnceValue(func() *runeSet { return parseRanges(newCombining + newCompatibility) })
)

func parseRanges(text string) *runeSet {
	s := &runeSet{}
	for field := range strings.FieldsSeq(text) {
		var lo, hi rune
		if n, _ := fmt.Sscanf(field, "%x-%x", &lo, &hi); n < 2 {
			hi = lo
		}
		s.add(lo, hi, 1)
	}
	return s
}

// accentRunes are the characters that accent stripping removes from decomposed text.
var accentRunes = sync.OnceValue(func() *runeSet {
	s := newerRemoved("Mn", newNonspacingMarks)
	s.add(0x1734, 0x1734, 1) // a spacing mark in newer versions of Unicode
	return s
})

// markRunes are the characters StripAccents removes.
var markRunes = sync.OnceValue(func() *runeSet {
	s := newerRemoved("M", newMarks)
	s.add(0x1cf2, 0x1cf3, 1) // letters in newer versions of Unicode
	return s
})

// uncleanRunes are the characters BERT's text cleaning removes.
var uncleanRunes = sync.OnceValue(func() *runeSet {
	s := newerRemoved("Cf", newFormats)
	s.addTable(unicode.Cc)
	s.addTable(unicode.Co)
	s.add(0xfffd, 0xfffd, 1)
	return s
})

// newerRemoved returns a category of Unicode 15 without the ranges in newer.
func newerRemoved(category, newer string) *runeSet {
	s := &runeSet{}
	s.addTable(unicode.Categories[category])
	without := parseRanges(newer)
	without.invert()
	s.intersect(without)
	return s
}

// toLower is unicode.ToLower plus the pairs added by Unicode 16 and 17.
func toLower(r rune) rune {
	switch {
	case r < 0x1c89:
	case r == 0x1c89, r == 0xa7cc, r == 0xa7ce, r == 0xa7d2, r == 0xa7d4, r == 0xa7da:
		return r + 1
	case r == 0xa7cb:
		return 0x264
	case r == 0xa7dc:
		return 0x19b
	case r >= 0x10d50 && r <= 0x10d65:
		return r + 0x20
	case r >= 0x16ea0 && r <= 0x16eb8:
		return r + 0x1b
	}
	return unicode.ToLower(r)
}
