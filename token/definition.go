package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// definition is a parsed tokenizer file, the input of newTokenizer: the settings as JSON,
// the large tables in their final form. Cache files store a definition.
type definition struct {
	settings
	tables
}

// settings are the small parts of a tokenizer.json under their original names.
type settings struct {
	AddedTokens []addedToken `json:"added_tokens"`
	FixedIDs    bool         `json:"fixed_ids,omitempty"` // keep the ids given in AddedTokens
	// HiddenSpecials means that special tokens are never matched in text. Only a caller
	// that builds a prompt from parts inserts them.
	HiddenSpecials bool            `json:"hidden_specials,omitempty"`
	Normalizer     json.RawMessage `json:"normalizer"`
	PreTokenizer   json.RawMessage `json:"pre_tokenizer"`
	PostProcessor  json.RawMessage `json:"post_processor"`
	Decoder        json.RawMessage `json:"decoder"`
	Model          modelSettings   `json:"model"`
	// SentencePiece is set if the file was a SentencePiece .model. Such a model has its
	// own normalizer and decoder.
	SentencePiece *spSettings `json:"sentencepiece,omitempty"`
}

// modelSettings are the model's settings without vocabulary and merges.
type modelSettings struct {
	Type string `json:"type"`
	bpeOptions
	Dropout  *float64 `json:"dropout"`
	UnkToken *string  `json:"unk_token"`
	UnkID    *int32   `json:"unk_id"`
	MaxRunes int      `json:"max_input_chars_per_word"`
}

// tables are the parts whose size grows with the vocabulary.
type tables struct {
	vocab    vocabulary
	merges   mergeTable
	scores   []float64 // scores of a Unigram vocabulary, by id
	literals []int32   // tokens of a byte-level vocabulary with characters outside the byte-level alphabet
}

// parse reads a tokenizer file in any supported format.
func parse(data []byte, name string) (*definition, error) {
	switch first := bytes.TrimLeft(data, " \t\r\n"); {
	case len(first) == 0:
		return nil, fmt.Errorf("the file is empty")
	case first[0] == '{':
		return parseJSON(data)
	case isRankFile(data):
		return parseRanks(data, name)
	}
	return parseSentencePiece(data)
}

// parseJSON reads a Hugging Face tokenizer.json or a tekken.json.
func parseJSON(data []byte) (*definition, error) {
	var s jsonscan.Scanner
	fields, model := map[string]json.RawMessage{}, map[string]json.RawMessage(nil)
	err := s.Document(data, func(key []byte) {
		if string(key) != "model" {
			setField(fields, key, s.Skip())
			return
		}
		model = map[string]json.RawMessage{}
		s.Object(func(key []byte) { setField(model, key, s.Skip()) })
	})
	if err == nil && model == nil && fields["config"] != nil && fields["vocab"] != nil {
		d, err := parseTekken(fields)
		if err != nil {
			return nil, fmt.Errorf("tekken.json: %w", err)
		}
		return d, nil
	}
	if err == nil && model == nil {
		err = errors.New("model: missing")
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	d := &definition{}
	d.Normalizer, d.PreTokenizer = fields["normalizer"], fields["pre_tokenizer"]
	d.PostProcessor, d.Decoder = fields["post_processor"], fields["decoder"]
	for _, name := range []string{"normalizer", "pre_tokenizer", "post_processor", "decoder"} {
		if err := checkLength(name, len(fields[name]), maxComponent); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %w", err)
		}
	}
	if raw := fields["added_tokens"]; raw != nil {
		if err := checkLength("added_tokens", len(raw), maxAdded); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %w", err)
		}
		if err := json.Unmarshal(raw, &d.AddedTokens); err != nil {
			return nil, fmt.Errorf("tokenizer.json: added_tokens: %w", err)
		}
	}
	if err := d.parseModel(model); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return d, nil
}

// setField adds a field of an object with a bounded number of fields.
func setField(fields map[string]json.RawMessage, key []byte, value json.RawMessage) {
	if fields[string(key)] = value; len(fields) > maxFields {
		beyond("an object with more than %d fields", maxFields)
	}
}

func (d *definition) parseModel(fields map[string]json.RawMessage) error {
	vocab, merges := fields["vocab"], fields["merges"]
	delete(fields, "vocab")
	delete(fields, "merges")
	rest, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	d.Model.MaxRunes = 100 // WordPiece default
	if err := json.Unmarshal(rest, &d.Model); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if d.Model.Type == "" {
		d.Model.Type = guessModelType(vocab, merges)
	}
	if vocab == nil {
		return fmt.Errorf("model.vocab: missing")
	}
	byteLevel, err := d.byteLevel()
	if err != nil {
		return err
	}
	switch d.Model.Type {
	case "BPE":
		if err := d.parseVocab(vocab, byteLevel); err != nil {
			return err
		}
		return d.parseMerges(merges, byteLevel)
	case "WordPiece", "WordLevel":
		return d.parseVocab(vocab, byteLevel)
	case "Unigram":
		return d.parseScores(vocab, byteLevel)
	}
	return fmt.Errorf("model.type: %q is not one of BPE, Unigram, WordPiece, WordLevel", d.Model.Type)
}

// guessModelType handles old files without model.type.
func guessModelType(vocab, merges []byte) string {
	switch {
	case bytes.HasPrefix(vocab, []byte("[")):
		return "Unigram"
	case merges != nil:
		return "BPE"
	}
	return "WordPiece"
}

// byteLevel reports whether words reach the model as bytes.
func (d *definition) byteLevel() (bool, error) {
	c, ok, err := newComponent(d.PreTokenizer, "pre_tokenizer")
	if err != nil || !ok {
		return false, err
	}
	_, byteLevel, err := newPreTokenizers(c)
	return byteLevel, err
}

// spelling converts texts of a file into texts of the vocabulary. For a byte-level
// vocabulary it maps byte-level characters to bytes. Results stay valid until the arena
// is reset.
type spelling struct {
	byteLevel bool
	arena     []byte
}

// bytes returns the vocabulary's text. If text has characters outside the byte-level
// alphabet, it is returned unchanged and ok is false.
func (s *spelling) bytes(text []byte) (out []byte, ok bool) {
	if cap(s.arena)-len(s.arena) < len(text) {
		s.arena = make([]byte, 0, max(1<<16, len(text)))
	}
	from := len(s.arena)
	if s.byteLevel {
		s.arena, ok = appendFromByteLevel(s.arena, string(text))
	}
	if !ok {
		s.arena = append(s.arena[:from], text...)
	}
	return s.arena[from:len(s.arena):len(s.arena)], ok || !s.byteLevel
}

// tableScanner reads the large tables of a file.
type tableScanner struct {
	jsonscan.Scanner
	texts [2][]byte // buffers for the last strings read
}

// id reads a token id: an integer from 0 to maxTokenID.
func (s *tableScanner) id() (int32, error) {
	n, ok := s.Int()
	if !ok || n < 0 || n > maxTokenID {
		return 0, fmt.Errorf("a token id is a whole number from 0 to %d", maxTokenID)
	}
	return int32(n), nil
}

// array calls element for each element of a list until element returns an error. name is
// the path of the list for errors.
func (s *tableScanner) array(name string, raw []byte, element func(i int) error) error {
	s.Reset(raw)
	if s.Type() != '[' {
		return fmt.Errorf("%s: expected a list", name)
	}
	var wrong error
	i := 0
	s.Array(func() {
		if i == maxTokens {
			beyond("%s: more than %d entries", name, maxTokens)
		}
		if wrong == nil {
			wrong = element(i)
		}
		i++
	})
	switch {
	case s.Err() != nil:
		return fmt.Errorf("%s: %w", name, s.Err())
	case wrong != nil:
		return fmt.Errorf("%s%w", name, wrong)
	}
	return nil
}

// parseVocab reads {"text": id, ...}.
func (d *definition) parseVocab(raw []byte, byteLevel bool) error {
	s := tableScanner{}
	spell := spelling{byteLevel: byteLevel}
	entries := make([]vocabEntry, 0, min(len(raw)/16, maxTokens))
	var wrong error
	err := s.Document(raw, func(key []byte) {
		if len(entries) == maxTokens {
			beyond("model.vocab: more than %d tokens", maxTokens)
		}
		spelled, ok := spell.bytes(key)
		id, err := s.id()
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("model.vocab[%q]: %w", spelled, err)
		}
		if !ok {
			d.literals = append(d.literals, id)
		}
		entries = append(entries, vocabEntry{spelled, id, !ok})
	})
	switch {
	case err != nil:
		return fmt.Errorf("model.vocab: %w", err)
	case wrong != nil:
		return wrong
	}
	return d.setVocab(entries)
}

func (d *definition) setVocab(entries []vocabEntry) (err error) {
	if len(entries) == 0 {
		return fmt.Errorf("model.vocab: empty")
	}
	if err = checkEntries(entries); err == nil {
		d.vocab, err = newVocabulary(entries)
	}
	if err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	return nil
}

// parseScores reads [["text", score], ...]. The index is the id.
func (d *definition) parseScores(raw []byte, byteLevel bool) error {
	s := tableScanner{}
	spell := spelling{byteLevel: byteLevel}
	var entries []vocabEntry
	err := s.array("model.vocab", raw, func(i int) error {
		if i > maxTokenID {
			return fmt.Errorf(": more than %d tokens", maxTokenID)
		}
		text, score, err := s.scoredPiece()
		if err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		spelled, ok := spell.bytes(text)
		if !ok {
			d.literals = append(d.literals, int32(i))
		}
		entries = append(entries, vocabEntry{spelled, int32(i), !ok})
		d.scores = append(d.scores, score)
		return nil
	})
	if err != nil {
		return err
	}
	return d.setVocab(entries)
}

var errNoPiece = errors.New("expected a text and its score")

// scoredPiece reads ["text", score].
func (s *tableScanner) scoredPiece() (text []byte, score float64, err error) {
	n, isText := 0, false
	err = errNoPiece
	s.Array(func() {
		switch n++; n {
		case 1:
			text, isText = s.String(s.texts[0][:0])
			s.texts[0] = text
		case 2:
			isNumber := s.Type() == '-' || s.Type()-'0' < 10
			if number := s.Skip(); isText && isNumber {
				score, err = parseScore(number)
			}
		}
	})
	if n != 2 {
		err = errNoPiece
	}
	return text, score, err
}

// parseScore parses a number like the reference implementation: with a single division,
// which can be off by the last bit. If two segmentations differ only by that bit, the bit
// decides.
func parseScore(number []byte) (float64, error) {
	exact, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return 0, err
	}
	mantissa, exponent := bytes.TrimPrefix(number, []byte("-")), 0
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		if exponent, err = strconv.Atoi(string(mantissa[i+1:])); err != nil {
			return 0, err
		}
		mantissa = mantissa[:i]
	}
	var digits uint64
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	for i, c := range slices.Concat(whole, fraction) {
		if digits > (math.MaxUint64-uint64(c-'0'))/10 { // the remaining digits are ignored
			exponent += max(len(whole)-i, 0)
			break
		}
		digits = digits*10 + uint64(c-'0')
		if i >= len(whole) {
			exponent--
		}
	}
	if exponent < -maxExactPower || exponent > maxExactPower {
		return exact, nil // real scores are never this large or small
	}
	score := float64(digits)
	if exponent < 0 {
		score /= math.Pow10(-exponent)
	} else {
		score *= math.Pow10(exponent)
	}
	return math.Copysign(score, exact), nil
}

// maxExactPower is the highest power of ten that a float64 holds exactly.
const maxExactPower = 22

// parseMerges reads ["left right", ...] or [["left", "right"], ...], best first.
func (d *definition) parseMerges(raw []byte, byteLevel bool) error {
	if raw == nil {
		return fmt.Errorf("model.merges: missing")
	}
	s := tableScanner{}
	m := merger{definition: d, spell: spelling{byteLevel: byteLevel}}
	for _, id := range d.literals {
		if m.literals == nil {
			m.literals = map[string]int32{}
		}
		if text := string(d.vocab.text(id)); text != "" {
			m.literals[text] = id
		}
	}
	err := s.array("model.merges", raw, func(i int) error {
		left, right, err := s.mergePair()
		if err == nil {
			err = m.add(left, right)
		}
		if err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.merges = m.table()
	return nil
}

// byteTokens returns the ids of the <0xNN> tokens, noToken for bytes without one. If the
// model does not use byte fallback, all entries are noToken.
func (d *definition) byteTokens() (ids [256]int32) {
	for b := range ids {
		ids[b] = noToken
		if !d.Model.ByteFallback {
			continue
		}
		if d.SentencePiece != nil {
			ids[b] = d.SentencePiece.ByteIDs[b]
		} else if id, ok := d.vocab.lookup(byteTokenName(byte(b))); ok {
			ids[b] = id
		}
	}
	return ids
}

// byteTokenName returns the text of a byte's token.
func byteTokenName(b byte) string {
	const hexDigits = "0123456789ABCDEF"
	return string([]byte{'<', '0', 'x', hexDigits[b>>4], hexDigits[b&15], '>'})
}
