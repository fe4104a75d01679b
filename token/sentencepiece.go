package token

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Piece types in a SentencePiece model.
const (
	pieceNormal      = 1
	pieceUnknown     = 2
	pieceControl     = 3
	pieceUserDefined = 4
	pieceUnused      = 5
	pieceByte        = 6
)

// Algorithms of a SentencePiece model.
const (
	spUnigram = 1
	spBPE     = 2
)

// spSettings are the settings of a SentencePiece model besides its pieces.
type spSettings struct {
	Algorithm      int      `json:"algorithm"`
	CharsMap       []byte   `json:"chars_map,omitempty"`
	DummyPrefix    bool     `json:"dummy_prefix"`
	RemoveExtra    bool     `json:"remove_extra"`
	EscapeSpaces   bool     `json:"escape_spaces"`
	SpaceAsSuffix  bool     `json:"space_as_suffix"`
	UserDefined    []string `json:"user_defined,omitempty"`
	UnknownID      int32    `json:"unknown_id"`
	UnknownSurface string   `json:"unknown_surface"`
	BeginID        int32    `json:"begin_id"`
	MinScore       float64  `json:"min_score"` // lowest score of a normal piece
	ControlIDs     []int32  `json:"control_ids,omitempty"`
	ByteIDs        []int32  `json:"byte_ids,omitempty"`
	byteFallback   bool
	pieces         []spPiece
}

type spPiece struct {
	text  string
	score float32
	kind  int
}

// parseSentencePiece reads a SentencePiece .model.
func parseSentencePiece(data []byte) (*definition, error) {
	sp := &spSettings{
		Algorithm: spUnigram, DummyPrefix: true, RemoveExtra: true, EscapeSpaces: true,
		UnknownSurface: " ⁇ ", BeginID: noToken, UnknownID: noToken,
		MinScore: math.MaxFloat32,
	}
	if err := sp.parse(data); err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	d := &definition{}
	d.SentencePiece = sp
	d.Model.ByteFallback = sp.byteFallback
	d.Model.UnkID = &sp.UnknownID
	entries := make([]vocabEntry, len(sp.pieces))
	for i, p := range sp.pieces {
		found := p.kind == pieceNormal || p.kind == pieceUserDefined
		entries[i] = vocabEntry{[]byte(p.text), int32(i), !found}
	}
	if err := d.setVocab(entries); err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	switch sp.Algorithm {
	case spUnigram:
		d.Model.Type = "Unigram"
		d.scores = sp.unigramScores()
	case spBPE:
		d.Model.Type = "BPE"
		d.Model.FuseUnk = true
		d.merges = sp.merges(&d.vocab)
	default:
		return nil, fmt.Errorf("SentencePiece model: model type %d is neither unigram nor BPE", sp.Algorithm)
	}
	return d, nil
}

// parse reads the three parts of the model needed for encoding.
func (sp *spSettings) parse(data []byte) error {
	err := protoFields(data, func(f protoField) error {
		switch f.number {
		case 1:
			if len(sp.pieces) == maxTokens {
				beyond("more than %d pieces", maxTokens)
			}
			return sp.parsePiece(f.bytes)
		case 2:
			return protoFields(f.bytes, sp.trainerField)
		case 3:
			return protoFields(f.bytes, sp.normalizerField)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sp.UnknownID == noToken {
		return errors.New("no piece of type UNKNOWN")
	}
	if int(sp.BeginID) >= len(sp.pieces) {
		sp.BeginID = noToken
	}
	if sp.byteFallback && len(sp.ByteIDs) != 256 {
		return fmt.Errorf("byte fallback with %d pieces of type BYTE, want 256", len(sp.ByteIDs))
	}
	return nil
}

func (sp *spSettings) parsePiece(b []byte) error {
	p := spPiece{kind: pieceNormal}
	err := protoFields(b, func(f protoField) error {
		switch f.number {
		case 1:
			p.text = string(f.bytes)
		case 2:
			p.score = math.Float32frombits(uint32(f.varint))
		case 3:
			p.kind = int(f.varint)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("piece %d: %w", len(sp.pieces), err)
	}
	id := int32(len(sp.pieces))
	if id > maxTokenID {
		return fmt.Errorf("more than %d pieces", maxTokenID)
	}
	switch p.kind {
	case pieceNormal:
		sp.MinScore = min(sp.MinScore, float64(p.score))
	case pieceUnknown:
		sp.UnknownID = id
	case pieceControl:
		sp.ControlIDs = append(sp.ControlIDs, id)
	case pieceUserDefined:
		sp.UserDefined = append(sp.UserDefined, p.text)
	case pieceByte:
		b, ok := byteOfToken(p.text)
		if !ok || int(b) != len(sp.ByteIDs) {
			return fmt.Errorf("piece %d: %q is not the next byte", id, p.text)
		}
		sp.ByteIDs = append(sp.ByteIDs, id)
	}
	sp.pieces = append(sp.pieces, p)
	return nil
}

func (sp *spSettings) trainerField(f protoField) error {
	switch f.number {
	case 3:
		sp.Algorithm = int(f.varint)
	case 24:
		sp.SpaceAsSuffix = f.varint != 0
	case 35:
		sp.byteFallback = f.varint != 0
	case 41:
		sp.BeginID = max(int32(f.varint), noToken)
	case 44:
		sp.UnknownSurface = string(f.bytes)
	}
	return nil
}

func (sp *spSettings) normalizerField(f protoField) error {
	switch f.number {
	case 2:
		sp.CharsMap = f.bytes
	case 3:
		sp.DummyPrefix = f.varint != 0
	case 4:
		sp.RemoveExtra = f.varint != 0
	case 5:
		sp.EscapeSpaces = f.varint != 0
	}
	return nil
}

// unigramScores returns the scores by id. User-defined pieces score better than all
// others, and longer pieces score better than shorter ones.
func (sp *spSettings) unigramScores() []float64 {
	scores := make([]float64, len(sp.pieces))
	for i, p := range sp.pieces {
		scores[i] = float64(p.score)
		if p.kind == pieceUserDefined {
			scores[i] = float64(float32(0.1 * float64(len(p.text)-1)))
		}
	}
	return scores
}

// merges derives the merges implied by the pieces: two pieces may merge if their joined
// text is a third piece. The best score merges first.
func (sp *spSettings) merges(vocab *vocabulary) mergeTable {
	order := make([]int32, 0, len(sp.pieces))
	for i, p := range sp.pieces {
		if p.kind == pieceNormal {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(sp.pieces[b].score, sp.pieces[a].score) })
	type rule struct {
		mergeRule
		rank int32
	}
	var rules []rule
	for i, rank := 0, int32(0); i < len(order); i++ {
		if i > 0 && sp.pieces[order[i]].score != sp.pieces[order[i-1]].score {
			rank++ // equal scores share a rank
		}
		for _, r := range splitsOf(vocab, order[i]) {
			rules = append(rules, rule{r, rank})
		}
		if len(rules) > maxTokens {
			beyond("more than %d merges", maxTokens)
		}
	}
	t := newMergeTable(len(rules))
	for _, r := range rules {
		t.set(r.left, r.right, r.rank, r.merged)
	}
	t.check()
	return t
}

// splitsOf returns all ways to split a token into two others.
func splitsOf(vocab *vocabulary, id int32) []mergeRule {
	text := string(vocab.text(id))
	var rules []mergeRule
	for i := 1; i < len(text); i++ {
		left, ok := vocab.lookup(text[:i])
		if !ok {
			continue
		}
		if right, ok := vocab.lookup(text[i:]); ok {
			rules = append(rules, mergeRule{left, right, id})
		}
	}
	return rules
}

// normalizer builds the model's normalizer.
func (sp *spSettings) normalizer() (func(string) string, error) {
	n := &spNormalizer{settings: sp, space: " "}
	if sp.EscapeSpaces {
		n.space = metaspace
	}
	if len(sp.CharsMap) > 0 {
		var err error
		if n.chars, err = parseCharsMap(sp.CharsMap); err != nil {
			return nil, fmt.Errorf("SentencePiece model: precompiled_charsmap: %w", err)
		}
	}
	if len(sp.UserDefined) > 0 {
		n.keep = newTrie()
		for i, text := range sp.UserDefined {
			if text != "" {
				n.keep.insert(text, int32(i))
			}
		}
	}
	return n.normalize, nil
}

// spNormalizer applies the character map, longest match first, and normalizes white
// space.
type spNormalizer struct {
	settings *spSettings
	chars    *charsMap // nil means identity
	keep     *trie     // user-defined pieces, never rewritten
	space    string
}

// prefix returns the replacement for the start of s, and the number of bytes it replaces.
func (n *spNormalizer) prefix(s string) (string, int) {
	if n.keep != nil {
		if _, length := n.keep.longest(s); length > 0 {
			return s[:length], length
		}
	}
	if n.chars != nil {
		if length, replacement := n.chars.longest(s); length > 0 {
			return replacement, length
		}
	}
	size := runeSize(s, 0)
	return s[:size], size
}

func (n *spNormalizer) normalize(s string) string {
	o := n.settings
	for o.RemoveExtra && s != "" {
		text, length := n.prefix(s)
		if text != " " {
			break
		}
		s = s[length:]
	}
	if s == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	if o.DummyPrefix && !o.SpaceAsSuffix {
		b.WriteString(n.space)
	}
	afterSpace := o.RemoveExtra
	for s != "" {
		text, length := n.prefix(s)
		s = s[length:]
		if afterSpace {
			text = strings.TrimLeft(text, " ")
		}
		if text != "" {
			b.WriteString(strings.ReplaceAll(text, " ", n.space))
			afterSpace = o.RemoveExtra && strings.HasSuffix(text, " ")
		}
	}
	out := b.String()
	for o.RemoveExtra && strings.HasSuffix(out, n.space) {
		out = strings.TrimSuffix(out, n.space)
	}
	if o.DummyPrefix && o.SpaceAsSuffix {
		out += n.space
	}
	return out
}

// decoder builds the model's decoder.
func (sp *spSettings) decoder(unknown string) decoder {
	return func(tokens []string) []string {
		out := make([]string, 0, len(tokens))
		atStart := sp.DummyPrefix || sp.RemoveExtra
		for _, t := range tokens {
			if t == unknown {
				t = sp.UnknownSurface
			} else if rest, ok := strings.CutPrefix(t, metaspace); ok && atStart {
				t = rest
				if !sp.RemoveExtra {
					atStart = false
				}
			}
			if t != "" {
				atStart = false
			}
			out = append(out, strings.ReplaceAll(t, metaspace, " "))
		}
		return decodeByteFallback(out)
	}
}
