package token

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Tokenizer encodes text into a model's token ids and decodes ids into text. It is safe
// for concurrent use.
type Tokenizer struct {
	name        string
	vocab       *vocabulary
	byteLevel   bool
	literals    map[string]int32 // tokens of a byte-level vocabulary with characters outside the byte-level alphabet
	added       []addedToken
	addedByID   map[int32]*addedToken
	raw         *addedMatcher // finds added tokens in the original text
	normalized  *addedMatcher // finds added tokens in normalized text; nil if there are none
	normalizers []normalizer
	pre         []preTokenizer
	model       model
	surround    surround
	decoders    []decoder
	buffers     sync.Pool // of *[]int32, for Count
	failed      atomic.Pointer[LimitError]
}

// Encode returns the ids of text. If addSpecial is set, the result includes the special
// tokens the model's tokenizer adds, such as beginning of text. Each byte of invalid
// UTF-8 counts as U+FFFD, which a JSON encoder sends in its place. If a text takes too much time or memory, Encode
// returns only a part of the ids, and Err returns the error.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.AppendEncode(nil, text, addSpecial)
}

// AppendEncode is like Encode but appends to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, addSpecial bool) []int32 {
	if addSpecial {
		dst = append(dst, t.surround.before...)
	}
	dst, _ = t.appendBounded(dst, text) // Err returns the error
	if addSpecial {
		dst = append(dst, t.surround.after...)
	}
	return dst
}

// Err returns the error of the first text that took too much time or memory to encode. After an error, all other texts
// fail, too.
func (t *Tokenizer) Err() error {
	if err := t.failed.Load(); err != nil {
		return err
	}
	return nil
}

// appendBounded is appendText with the error of a text that takes too much time or memory.
func (t *Tokenizer) appendBounded(dst []int32, text string) ([]int32, error) {
	if err := t.Err(); err != nil {
		return dst, err
	}
	out := dst
	err := t.bounded(func() { out = t.appendText(dst, text) })
	return out, err
}

// bounded runs work and keeps the LimitError that stopped it for Err.
func (t *Tokenizer) bounded(work func()) error {
	err := bounded(t.name, func() error { work(); return nil })
	if limit, ok := errors.AsType[*LimitError](err); ok {
		t.failed.CompareAndSwap(nil, limit)
	}
	return err
}

// Count implements Counter. It does not count special tokens around the text.
func (t *Tokenizer) Count(_ context.Context, text string) (int, error) {
	buffer, _ := t.buffers.Get().(*[]int32)
	if buffer == nil {
		buffer = new([]int32)
	}
	ids, err := t.appendBounded((*buffer)[:0], text)
	*buffer = ids
	t.buffers.Put(buffer)
	return len(ids), err
}

// Name implements Counter.
func (t *Tokenizer) Name() string { return t.name }

// Exact implements Counter.
func (t *Tokenizer) Exact() bool { return true }

// VocabSize returns the highest id plus 1.
func (t *Tokenizer) VocabSize() int {
	size := t.vocab.size()
	for i := range t.added {
		size = max(size, int(t.added[i].ID)+1)
	}
	return size
}

// Overhead returns the number of special tokens Encode adds around a text.
func (t *Tokenizer) Overhead() int { return len(t.surround.before) + len(t.surround.after) }

// Special is a token without text of its own, such as the beginning or end of a text or a
// role in a conversation.
type Special struct {
	ID   int32
	Text string
}

// Specials returns the special tokens in file order.
func (t *Tokenizer) Specials() []Special {
	var all []Special
	for i := range t.added {
		if a := &t.added[i]; a.Special {
			all = append(all, Special{a.ID, a.Content})
		}
	}
	return all
}

// ID returns the id of a token by its text in the vocabulary.
func (t *Tokenizer) ID(token string) (int32, bool) {
	for i := range t.added {
		if t.added[i].Content == token {
			return t.added[i].ID, true
		}
	}
	return t.vocabID(token)
}

// vocabID is like ID but ignores added tokens.
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

// Token returns the text of an id in the vocabulary.
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

// Decode returns the text of ids. If skipSpecial is set, it omits special tokens. Unknown
// ids are always omitted. If decoding takes too much time or memory, Decode returns an empty text, and Err returns the
// error.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) (text string) {
	_ = t.bounded(func() { text = t.decode(ids, skipSpecial) }) // Err returns the error
	return text
}

func (t *Tokenizer) decode(ids []int32, skipSpecial bool) string {
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
	size := totalLength(tokens)
	for _, step := range t.decoders {
		tokens = step(tokens)
		checkGrowth(size, totalLength(tokens))
	}
	return strings.Join(tokens, "")
}

// appendText appends the ids of text.
func (t *Tokenizer) appendText(dst []int32, text string) []int32 {
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // one U+FFFD per byte
	}
	e := encoding{t: t, ids: dst, size: len(text), work: newWork(len(text))}
	e.emit = e.words
	t.raw.split(text,
		func(start, end int) { e.segment(text[start:end], start == 0) },
		func(a *addedToken) { e.ids = append(e.ids, a.ID) })
	return e.ids
}

// encoding is the state of encoding one text.
type encoding struct {
	t    *Tokenizer
	ids  []int32
	step int // index of the next pre-tokenizer
	size int // of the text
	made int // bytes of all pieces
	work work
	emit func(piece)
}

// segment encodes the text between two added tokens.
func (e *encoding) segment(text string, first bool) {
	// A piece after characters removed by normalization is not the first.
	first = first && e.t.normalize(&e.work, text[:runeSize(text, 0)]) != ""
	text = e.t.normalize(&e.work, text)
	if text == "" {
		return
	}
	if e.t.normalized == nil {
		e.words(piece{text, first, &e.work})
		return
	}
	e.t.normalized.split(text,
		func(start, end int) { e.words(piece{text[start:end], first && start == 0, &e.work}) },
		func(a *addedToken) { e.ids = append(e.ids, a.ID) })
}

func (t *Tokenizer) normalize(w *work, text string) string {
	size := len(text)
	for _, n := range t.normalizers {
		text = n(w, text)
		checkGrowth(size, len(text))
	}
	return text
}

// words passes a piece through the remaining pre-tokenizers, and the result to the model.
func (e *encoding) words(p piece) {
	if e.step == len(e.t.pre) {
		e.ids = e.t.model.appendWord(e.ids, p.text)
		return
	}
	if e.made += len(p.text); e.made > growthFree {
		checkGrowth(e.size, e.made/(len(e.t.pre)+1)) // each pre-tokenizer makes all of the text again
	}
	step := e.t.pre[e.step]
	e.step++
	step(p, e.emit)
	e.step--
}

// newTokenizer builds a Tokenizer from a definition.
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

// setSentencePiece is setComponents for a SentencePiece model. Control pieces are never
// found in text; user-defined pieces always are.
func (t *Tokenizer) setSentencePiece(d *definition) error {
	sp := d.SentencePiece
	normalize, err := sp.normalizer()
	if err != nil {
		return err
	}
	t.normalizers = []normalizer{plain(normalize)}
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
		if !ok && !t.byteLevel && !d.Model.ByteFallback { // byte-based vocabularies have no unknown characters
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

// setAdded assigns ids to the added tokens and builds their matchers. If the vocabulary
// contains the text, the token gets the vocabulary's id, otherwise the next free id. The
// reference implementation ignores the ids in the file, too.
func (t *Tokenizer) setAdded(d *definition) {
	t.addedByID = map[int32]*addedToken{}
	seen := map[string]bool{}
	next := int32(t.vocab.size())
	var raw, normalized []addedToken
	var rawTexts, normalizedTexts []string
	bytes, w := 0, newWork(maxAdded)
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
			a.decoded = t.normalize(&w, a.Content)
			if bytes += len(a.decoded); bytes > maxAdded {
				beyond("the normalized added tokens have more than %d MiB", maxAdded>>20)
			}
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

// setPieces is setAdded for a SentencePiece model. Control pieces are special but never
// matched in text. BPE models match user-defined pieces in normalized text; Unigram
// models only give them a high score.
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
