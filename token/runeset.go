package token

import (
	"fmt"
	"strings"
	"unicode"
)

// runeSet is a set of code points as a bitmap. A lookup is one load, and union,
// complement and intersection are exact.
type runeSet [(unicode.MaxRune + 1) / 64]uint64

func (s *runeSet) has(r rune) bool { return s[uint32(r)/64]>>(uint32(r)%64)&1 != 0 }

// add adds lo, lo+stride, ... up to hi.
func (s *runeSet) add(lo, hi, stride rune) {
	for r := lo; r <= hi; r += stride {
		if stride == 1 && r%64 == 0 && r+63 <= hi {
			s[r/64] = ^uint64(0)
			r += 63
			continue
		}
		s[r/64] |= 1 << (uint32(r) % 64)
	}
}

func (s *runeSet) addTable(t *unicode.RangeTable) {
	for _, r := range t.R16 {
		s.add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		s.add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
}

func (s *runeSet) union(t *runeSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *runeSet) intersect(t *runeSet) {
	for i := range s {
		s[i] &= t[i]
	}
}

func (s *runeSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// addFold adds the other cases of the set's ASCII members. Patterns fold only ASCII.
func (s *runeSet) addFold() {
	for r := rune('A'); r <= 'z'; r++ {
		if s.has(r) {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				s.add(f, f, 1)
			}
		}
	}
}

// addProperty adds the code points of a Unicode category, script or property.
func (s *runeSet) addProperty(name string) error {
	for long, short := range longCategories {
		if strings.EqualFold(long, name) {
			name = short
		}
	}
	if _, ok := unicode.Categories[name]; ok {
		s.addCategory(name)
		return nil
	}
	if t, ok := unicode.Scripts[name]; ok {
		s.addTable(t)
		for _, r := range unicode16[name] {
			s.add(r[0], r[1], 1)
		}
		return nil
	}
	if t, ok := unicode.Properties[name]; ok {
		s.addTable(t)
		return nil
	}
	return fmt.Errorf("unknown property %q", name)
}

var longCategories = map[string]string{
	"Letter": "L", "Number": "N", "Mark": "M", "Punctuation": "P", "Punct": "P", "Symbol": "S", "Separator": "Z",
}

// addWord adds the characters of \w in a pattern: letters, marks, digits, connectors.
func (s *runeSet) addWord() {
	for _, category := range []string{"L", "M", "Nd", "Nl", "Pc"} {
		s.addCategory(category)
	}
	s.addTable(unicode.Other_Alphabetic)
	// The reference engine includes the Latin-1 superscripts and fractions.
	for _, r := range "²³¹¼½¾" {
		s.add(r, r, 1)
	}
}
