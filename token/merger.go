package token

import (
	"bytes"
	"errors"
	"fmt"
)

// merger collects the merges of a definition from pairs of texts, best first.
type merger struct {
	*definition
	spell  spelling
	joined []byte
	rules  []mergeRule
	// literals are the tokens that the vocabulary's lookup does not find.
	literals map[string]int32
}

type mergeRule struct{ left, right, merged int32 }

func (m *merger) add(left, right []byte) error {
	l, err := m.id(left)
	if err != nil {
		return err
	}
	r, err := m.id(right)
	if err != nil {
		return err
	}
	// The prefix of a continuing token does not appear inside the merged token.
	rest, _ := bytes.CutPrefix(right, []byte(m.Model.ContinuingPrefix))
	m.joined = append(append(m.joined[:0], left...), rest...)
	merged, err := m.id(m.joined)
	if err != nil {
		return err
	}
	m.rules = append(m.rules, mergeRule{l, r, merged})
	return nil
}

// table builds the merge table.
func (m *merger) table() mergeTable {
	t := newMergeTable(len(m.rules))
	for rank, r := range m.rules {
		t.set(r.left, r.right, int32(rank), r.merged)
	}
	t.check()
	return t
}

func (m *merger) id(text []byte) (int32, error) {
	m.spell.arena = m.spell.arena[:0] // the previous result is no longer needed
	spelled, ok := m.spell.bytes(text)
	if ok {
		var id int32
		if id, ok = m.vocab.lookup(string(spelled)); ok {
			return id, nil
		}
	}
	if id, ok := m.literals[string(text)]; ok {
		return id, nil
	}
	return 0, fmt.Errorf("token %q is not in the vocabulary", text)
}

// mergePair reads "left right" or ["left", "right"].
func (s *tableScanner) mergePair() (left, right []byte, err error) {
	if s.Type() == '"' {
		s.texts[0], _ = s.String(s.texts[0][:0])
		left, right, ok := bytes.Cut(s.texts[0], []byte{' '})
		if !ok || bytes.IndexByte(right, ' ') >= 0 {
			return nil, nil, fmt.Errorf("%q is not two tokens separated by a space", s.texts[0])
		}
		return left, right, nil
	}
	n, texts := 0, 0
	s.Array(func() {
		if n++; n <= len(s.texts) {
			var ok bool
			if s.texts[n-1], ok = s.String(s.texts[n-1][:0]); ok {
				texts++
			}
		}
	})
	if n != len(s.texts) || texts != n {
		return nil, nil, errors.New("a merge is a string or a pair of strings")
	}
	return s.texts[0], s.texts[1], nil
}
