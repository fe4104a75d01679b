package token

import "unicode/utf8"

// A pattern is a regular expression of the kind tokenizers cut text with:
// alternatives of sequences of repeated character sets. It says the same as a
// general engine would, and runs many times as fast.
type pattern struct {
	alternatives []sequence
}

// A sequence is what one alternative matches, one atom after another.
type sequence []atom

// An atom is one repeated set of characters, a look ahead, or a group.
type atom struct {
	kind       atomKind
	set        *runeSet
	min, max   int // repetitions; max is -1 for any number
	possessive bool
	group      []sequence // of fixed atoms only, so each has one way to match
}

type atomKind uint8

const (
	atomSet      atomKind = iota
	atomNotAhead          // (?!set)
	atomEnd               // $, the end of the text
	atomGroup             // (?:a|b), once or optional
)

// find returns the first match at or after i, as start and end; start is
// len(s) when there is none. Empty matches are passed over.
func (p *pattern) find(s string, i int) (start, end int) {
	for i < len(s) {
		for k := range p.alternatives {
			if end := p.alternatives[k].match(s, i); end > i {
				return i, end
			}
		}
		i += runeSize(s, i)
	}
	return len(s), len(s)
}

func runeSize(s string, i int) int {
	if s[i] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return size
}

// match is the end of the match of the sequence at i, or -1.
func (q sequence) match(s string, i int) int {
	if len(q) == 0 {
		return i
	}
	a := &q[0]
	switch a.kind {
	case atomSet:
		return q.matchSet(s, i)
	case atomNotAhead:
		if i < len(s) {
			if r, _ := decodeAt(s, i); a.set.has(r) {
				return -1
			}
		}
		return q[1:].match(s, i)
	case atomEnd:
		if i < len(s) {
			return -1
		}
		return q[1:].match(s, i)
	default:
		return q.matchGroup(s, i)
	}
}

// matchSet takes as many characters as it may and gives them back one by one
// while the rest does not match.
func (q sequence) matchSet(s string, i int) int {
	a := &q[0]
	n := 0
	at := i
	for at < len(s) && n != a.max {
		if c := s[at]; c < utf8.RuneSelf {
			if !a.set.has(rune(c)) {
				break
			}
			at++
		} else {
			r, size := utf8.DecodeRuneInString(s[at:])
			if !a.set.has(r) {
				break
			}
			at += size
		}
		n++
	}
	if n < a.min {
		return -1
	}
	if len(q) == 1 {
		return at
	}
	for {
		if end := q[1:].match(s, at); end >= 0 {
			return end
		}
		if n == a.min || a.possessive {
			return -1
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
		n--
	}
}

func (q sequence) matchGroup(s string, i int) int {
	a := &q[0]
	for _, g := range a.group {
		if at := g.match(s, i); at >= 0 {
			if end := q[1:].match(s, at); end >= 0 {
				return end
			}
		}
	}
	if a.min == 0 {
		return q[1:].match(s, i)
	}
	return -1
}

func decodeAt(s string, i int) (rune, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s[i:])
}
