package token

import "unicode/utf8"

// pattern is a regular expression of the kind tokenizers use to split text: alternatives
// of sequences of repeated character sets. It matches like a general engine and is many
// times faster.
type pattern struct {
	alternatives []sequence
}

// sequence is one alternative: atoms matched one after another.
type sequence []atom

// atom is a repeated character set, a negative lookahead or a group.
type atom struct {
	kind       atomKind
	set        *runeSet
	min, max   int // repetitions; max is -1 if unlimited
	possessive bool
	group      []sequence // sequences of fixed length, so each matches in one way only
}

type atomKind uint8

const (
	atomSet      atomKind = iota
	atomNotAhead          // (?!set)
	atomEnd               // $, the end of the text
	atomGroup             // (?:a|b), once or optional
)

// find returns the start and end of the first match at or after i. start is len(s) if
// there is no match. Empty matches are skipped.
func (p *pattern) find(s string, i int, w *work) (start, end int) {
	for i < len(s) {
		for k := range p.alternatives {
			if end := p.alternatives[k].match(s, i, w); end > i {
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

// match returns the end of the match at i, or -1.
func (q sequence) match(s string, i int, w *work) int {
	w.spend(1)
	if len(q) == 0 {
		return i
	}
	a := &q[0]
	switch a.kind {
	case atomSet:
		return q.matchSet(s, i, w)
	case atomNotAhead:
		if i < len(s) {
			if r, _ := decodeAt(s, i); a.set.has(r) {
				return -1
			}
		}
		return q[1:].match(s, i, w)
	case atomEnd:
		if i < len(s) {
			return -1
		}
		return q[1:].match(s, i, w)
	default:
		return q.matchGroup(s, i, w)
	}
}

// matchSet takes as many characters as possible and backtracks one by one until the
// remaining atoms match.
func (q sequence) matchSet(s string, i int, w *work) int {
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
	w.spend(n)
	if n < a.min {
		return -1
	}
	if len(q) == 1 {
		return at
	}
	for {
		if end := q[1:].match(s, at, w); end >= 0 {
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

func (q sequence) matchGroup(s string, i int, w *work) int {
	a := &q[0]
	for _, g := range a.group {
		if at := g.match(s, i, w); at >= 0 {
			if end := q[1:].match(s, at, w); end >= 0 {
				return end
			}
		}
	}
	if a.min == 0 {
		return q[1:].match(s, i, w)
	}
	return -1
}

func decodeAt(s string, i int) (rune, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s[i:])
}
