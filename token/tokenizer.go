package token

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Tokenizer encodes text into the ids a model is given, and back. It is safe
// for concurrent use.
type Tokenizer struct {
	name        string
	vocab       *vocabulary
	byteLevel   bool
	literals    map[string]int32 // tokens of a byte-level vocabulary not spelled in its characters
	added       []addedToken
	addedByID   map[int32]*addedToken
	raw         *addedMatcher // finds added tokens in the text as it is
	normalized  *addedMatcher // finds added tokens in normalized text; nil for none
	normalizers []normalizer
	pre         []preTokenizer
	model       model
	surround    surround
	decoders    []decoder
	buffers     sync.Pool // of *[]int32, for Count
}

// Encode is the ids of text; addSpecial puts around them the special tokens
// (beginning of text, ...) that the model's tokenizer adds. Bytes that are not
// UTF-8 count as U+FFFD each, which is what a JSON encoder sends for them.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.AppendEncode(nil, text, addSpecial)
}

// AppendEncode appends what Encode returns to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, addSpecial bool) []int32 {
	if addSpecial {
		dst = append(dst, t.surround.before...)
	}
	dst = t.appendText(dst, text)
	if addSpecial {
		dst = append(dst, t.surround.after...)
	}
	return dst
}

// Count implements Counter: the tokens of text without special tokens around it.
func (t *Tokenizer) Count(_ context.Context, text string) (int, error) {
	buffer, _ := t.buffers.Get().(*[]int32)
	if buffer == nil {
		buffer = new([]int32)
	}
	*buffer = t.appendText((*buffer)[:0], text)
	n := len(*buffer)
	t.buffers.Put(buffer)
	return n, nil
}

// Name implements Counter.
func (t *Tokenizer) Name() string { return t.name }

// Exact implements Counter.
func (t *Tokenizer) Exact() bool { return true }

// VocabSize is one more than the highest id.
func (t *Tokenizer) VocabSize() int {
	size := t.vocab.size()
	for i := range t.added {
		size = max(size, int(t.added[i].ID)+1)
	}
	return size
}

// Overhead is how many special tokens Encode puts around a text.
func (t *Tokenizer) Overhead() int { return len(t.surround.before) + len(t.surround.after) }

// A Special is a token that stands for no text of its own: the beginning or
// the end of a text, a role in a conversation.
type Special struct {
	ID   int32
	Text string
}

// Specials is the special tokens, in the order of the file.
func (t *Tokenizer) Specials() []Special {
	var all []Special
	for i := range t.added {
		if a := &t.added[i]; a.Special {
			all = append(all, Special{a.ID, a.Content})
		}
	}
	return all
}

// ID finds a token by its text as the vocabulary spells it.
func (t *Tokenizer) ID(token string) (int32, bool) {
	for i := range t.added {
		if t.added[i].Content == token {
			return t.added[i].ID, true
		}
	}
	return t.vocabID(token)
}

// vocabID finds a token of the model itself.
func (t *Tokenizer) vocabID(token string) (int32, bool) {
	if !t.byteLevel {
		return t.vocab.lookup(token)
	}
	if b, ok := appendFromByteLevel(nil, token); ok {
		return t.vocab.lookup(string(b))
	}
	id, ok := t.literals[token]
	return id, ok
}

// Token is the text of an id as the vocabulary spells it.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if a := t.addedByID[id]; a != nil {
		return a.decoded, true
	}
	text := string(t.vocab.text(id))
	if t.byteLevel {
		if literal, ok := t.literals[text]; !ok || literal != id {
			text = toByteLevel(text)
		}
	}
	return text, text != ""
}

// Decode is the text of ids; skipSpecial leaves special tokens out. Ids the
// tokenizer does not know are left out too.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if a := t.addedByID[id]; a != nil && a.Special && skipSpecial {
			continue
		}
		if token, ok := t.Token(id); ok {
			tokens = append(tokens, token)
		}
	}
	if len(t.decoders) == 0 {
		return strings.Join(tokens, " ")
	}
	for _, step := range t.decoders {
		tokens = step(tokens)
	}
	return strings.Join(tokens, "")
}

// appendText appends the ids of text.
func (t *Tokenizer) appendText(dst []int32, text string) []int32 {
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // one U+FFFD for each byte
	}
	e := encoding{t: t, ids: dst}
	e.emit = e.words
	t.raw.split(text,
		func(start, end int) { e.segment(text[start:end], start == 0) },
		func(a *addedToken) { e.ids = append(e.ids, a.ID) })
	return e.ids
}

// An encoding is the encoding of one text under way.
type encoding struct {
	t    *Tokenizer
	ids  []int32
	step int // of the pre-tokenizers
	emit func(piece)
}

// segment encodes text between added tokens.
func (e *encoding) segment(text string, first bool) {
	// What follows characters that were normalized away does not come first.
	first = first && e.t.normalize(text[:runeSize(text, 0)]) != ""
	text = e.t.normalize(text)
	if text == "" {
		return
	}
	if e.t.normalized == nil {
		e.words(piece{text, first})
		return
	}
	e.t.normalized.split(text,
		func(start, end int) { e.words(piece{text[start:end], first && start == 0}) },
		func(a *addedToken) { e.ids = append(e.ids, a.ID) })
}

func (t *Tokenizer) normalize(text string) string {
	for _, n := range t.normalizers {
		text = n(text)
	}
	return text
}

// words passes a piece through the pre-tokenizers that are left and what
// comes out of the last to the model.
func (e *encoding) words(p piece) {
	if e.step == len(e.t.pre) {
		e.ids = e.t.model.appendWord(e.ids, p.text)
		return
	}
	step := e.t.pre[e.step]
	e.step++
	step(p, e.emit)
	e.step--
}

// newTokenizer makes a Tokenizer of a definition.
func newTokenizer(d *definition, name string) (*Tokenizer, error) {
	t := &Tokenizer{name: name, vocab: &d.vocab}
	setComponents := t.setComponents
	if d.SentencePiece != nil {
		setComponents = t.setSentencePiece
	}
	if err := setComponents(d); err != nil {
		return nil, err
	}
	t.literals = make(map[string]int32, len(d.literals))
	for _, id := range d.literals {
		t.literals[string(d.vocab.text(id))] = id
	}
	if err := t.setModel(d); err != nil {
		return nil, err
	}
	t.setAdded(d)
	if sp := d.SentencePiece; sp != nil {
		t.setPieces(sp)
	}
	return t, nil
}

func (t *Tokenizer) setComponents(d *definition) error {
	c, ok, err := newComponent(d.Normalizer, "normalizer")
	if ok {
		t.normalizers, err = newNormalizers(c)
	}
	if err != nil {
		return err
	}
	c, ok, err = newComponent(d.PreTokenizer, "pre_tokenizer")
	if ok {
		t.pre, t.byteLevel, err = newPreTokenizers(c)
	}
	if err != nil {
		return err
	}
	c, ok, err = newComponent(d.PostProcessor, "post_processor")
	if ok {
		t.surround, err = newSurround(c)
	}
	if err != nil {
		return err
	}
	c, ok, err = newComponent(d.Decoder, "decoder")
	if ok {
		t.decoders, err = newDecoders(c)
	}
	return err
}

// setSentencePiece is setComponents for a SentencePiece model. Its control
// pieces are never found in text, and the ones the user defined always are.
func (t *Tokenizer) setSentencePiece(d *definition) error {
	sp := d.SentencePiece
	normalize, err := sp.normalizer()
	if err != nil {
		return err
	}
	t.normalizers = []normalizer{normalize}
	t.decoders = []decoder{sp.decoder(string(d.vocab.text(sp.UnknownID)))}
	if sp.BeginID != noToken {
		t.surround.before = []int32{sp.BeginID}
	}
	return nil
}

func (t *Tokenizer) setModel(d *definition) error {
	unk := noToken
	if name := d.Model.UnkToken; name != nil {
		id, ok := t.vocabID(*name)
		if !ok && !t.byteLevel && !d.Model.ByteFallback { // with bytes there are no unknown characters
			return fmt.Errorf("model.unk_token: %q is not in the vocabulary", *name)
		}
		if ok {
			unk = id
		}
	}
	if sp := d.SentencePiece; sp != nil {
		unk = sp.UnknownID
	}
	switch d.Model.Type {
	case "BPE":
		if p := d.Model.Dropout; p != nil && *p > 0 {
			return fmt.Errorf("model.dropout: %v makes encoding random; set it to null", *p)
		}
		t.model = newBPE(d, t.byteLevel, unk)
	case "Unigram":
		if d.Model.UnkID == nil || int(*d.Model.UnkID) >= len(d.scores) || *d.Model.UnkID < 0 {
			return fmt.Errorf("model.unk_id: missing or not in the vocabulary")
		}
		t.model = newUnigram(d, *d.Model.UnkID)
	case "WordPiece", "WordLevel":
		if unk == noToken {
			return fmt.Errorf("model.unk_token: missing")
		}
		if d.Model.Type == "WordLevel" {
			t.model = &wordLevel{t.vocab, unk}
		} else {
			t.model = &wordPiece{t.vocab, d.Model.ContinuingPrefix, d.Model.MaxRunes, unk}
		}
	}
	return nil
}

// setAdded gives the added tokens their ids and prepares the search for them.
// The id is the one the vocabulary has for the text, and otherwise the next
// that is free: the reference implementation does not go by the id in the file.
func (t *Tokenizer) setAdded(d *definition) {
	t.addedByID = map[int32]*addedToken{}
	seen := map[string]bool{}
	next := int32(t.vocab.size())
	var raw, normalized []addedToken
	var rawTexts, normalizedTexts []string
	for _, a := range d.AddedTokens {
		if a.Content == "" || seen[a.Content] {
			continue
		}
		seen[a.Content] = true
		if id, ok := t.vocabID(a.Content); ok && !d.FixedIDs {
			a.ID = id
		} else if !d.FixedIDs {
			a.ID = next
			next++
		}
		if a.Normalized {
			a.decoded = t.normalize(a.Content)
			normalized, normalizedTexts = append(normalized, a), append(normalizedTexts, a.decoded)
		} else {
			a.decoded = a.Content
			raw, rawTexts = append(raw, a), append(rawTexts, a.Content)
		}
		t.added = append(t.added, a)
	}
	for i := range t.added {
		t.addedByID[t.added[i].ID] = &t.added[i]
	}
	if d.HiddenSpecials {
		raw, rawTexts = nil, nil
	}
	t.raw = newAddedMatcher(raw, rawTexts)
	if len(normalized) > 0 {
		t.normalized = newAddedMatcher(normalized, normalizedTexts)
	}
}

// setPieces is setAdded for a SentencePiece model: control pieces are special
// but not looked for, user-defined pieces are cut out of normalized text where
// pieces merge, and merely score well where they are chosen by score.
func (t *Tokenizer) setPieces(sp *spSettings) {
	for _, id := range sp.ControlIDs {
		text := string(t.vocab.text(id))
		t.added = append(t.added, addedToken{ID: id, Content: text, decoded: text, Special: true})
	}
	var user []addedToken
	if sp.Algorithm == spBPE {
		for _, text := range sp.UserDefined {
			if id, ok := t.vocab.lookup(text); ok {
				user = append(user, addedToken{ID: id, Content: text})
			}
		}
	}
	if len(user) > 0 {
		t.normalized = newAddedMatcher(user, sp.UserDefined)
	}
	for i := range t.added {
		t.addedByID[t.added[i].ID] = &t.added[i]
	}
}
