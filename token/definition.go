package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A definition is what a tokenizer file says, read but not yet made into a
// Tokenizer: the settings as JSON, the large tables in the form they are used
// in. It is what a cache file holds.
type definition struct {
	settings
	tables
}

// settings are the small parts of a tokenizer.json, in its own words.
type settings struct {
	AddedTokens []addedToken `json:"added_tokens"`
	FixedIDs    bool         `json:"fixed_ids,omitempty"` // added tokens have the ids they say
	// HiddenSpecials are never found in text: only whoever builds a prompt out
	// of parts puts them in.
	HiddenSpecials bool            `json:"hidden_specials,omitempty"`
	Normalizer     json.RawMessage `json:"normalizer"`
	PreTokenizer   json.RawMessage `json:"pre_tokenizer"`
	PostProcessor  json.RawMessage `json:"post_processor"`
	Decoder        json.RawMessage `json:"decoder"`
	Model          modelSettings   `json:"model"`
	// SentencePiece is set for what was read from a SentencePiece .model,
	// which has a normalizer and a decoder of its own.
	SentencePiece *spSettings `json:"sentencepiece,omitempty"`
}

// modelSettings are the model without its vocabulary and merges.
type modelSettings struct {
	Type string `json:"type"`
	bpeOptions
	Dropout  *float64 `json:"dropout"`
	UnkToken *string  `json:"unk_token"`
	UnkID    *int32   `json:"unk_id"`
	MaxRunes int      `json:"max_input_chars_per_word"`
}

// tables are the parts that grow with the vocabulary.
type tables struct {
	vocab    vocabulary
	merges   mergeTable
	scores   []float64 // of a Unigram vocabulary, by id
	literals []int32   // tokens of a byte-level vocabulary not spelled in its characters
}

// parseJSON reads a Hugging Face tokenizer.json, or else a tekken.json.
func parseJSON(data []byte) (*definition, error) {
	s := jsonScanner{data: data}
	fields, model := map[string]json.RawMessage{}, map[string]json.RawMessage(nil)
	err := s.object(func(key string) error {
		if key != "model" {
			return s.field(fields, key, key)
		}
		model = map[string]json.RawMessage{}
		return s.object(func(key string) error { return s.field(model, key, "model."+key) })
	})
	if err == nil && s.peek() != 0 {
		err = s.fail("the end of the file")
	}
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
	if raw := fields["added_tokens"]; raw != nil {
		if err := json.Unmarshal(raw, &d.AddedTokens); err != nil {
			return nil, fmt.Errorf("tokenizer.json: added_tokens: %w", err)
		}
	}
	if err := d.parseModel(model); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return d, nil
}

// field keeps a value unread; path names it in errors.
func (s *jsonScanner) field(fields map[string]json.RawMessage, key, path string) error {
	raw, err := s.skip()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fields[key] = raw
	return nil
}

func (d *definition) parseModel(fields map[string]json.RawMessage) error {
	vocab, merges := fields["vocab"], fields["merges"]
	delete(fields, "vocab")
	delete(fields, "merges")
	rest, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	d.Model.MaxRunes = 100 // what WordPiece has where the file says nothing
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
	return fmt.Errorf("model.type: %q is none of BPE, Unigram, WordPiece, WordLevel", d.Model.Type)
}

// guessModelType is for files from before the type was written.
func guessModelType(vocab, merges []byte) string {
	switch {
	case bytes.HasPrefix(vocab, []byte("[")):
		return "Unigram"
	case merges != nil:
		return "BPE"
	}
	return "WordPiece"
}

// byteLevel says whether words reach the model as bytes.
func (d *definition) byteLevel() (bool, error) {
	c, ok, err := newComponent(d.PreTokenizer, "pre_tokenizer")
	if err != nil || !ok {
		return false, err
	}
	_, byteLevel, err := newPreTokenizers(c)
	return byteLevel, err
}

// spelling turns the texts of a file into those of the vocabulary: at byte
// level, into the bytes they stand for. Results stay valid.
type spelling struct {
	byteLevel bool
	arena     []byte
}

// bytes is the text for the vocabulary; ok is false for a token that is not
// spelled in byte-level characters and stays as it is.
func (s *spelling) bytes(text []byte) (out []byte, ok bool) {
	if !s.byteLevel {
		return text, true
	}
	if cap(s.arena)-len(s.arena) < len(text) {
		s.arena = make([]byte, 0, max(1<<16, len(text)))
	}
	from := len(s.arena)
	s.arena, ok = appendFromByteLevel(s.arena, string(text))
	if !ok {
		return text, false
	}
	return s.arena[from:len(s.arena):len(s.arena)], true
}

// parseVocab reads {"text": id, ...}.
func (d *definition) parseVocab(raw []byte, byteLevel bool) error {
	s := jsonScanner{data: raw}
	spell := spelling{byteLevel: byteLevel}
	entries := make([]vocabEntry, 0, len(raw)/16)
	if err := s.take('{'); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	for first := true; ; first = false {
		ok, err := s.more('}', first)
		if err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
		if !ok {
			break
		}
		text, err := s.str()
		if err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
		if err := s.take(':'); err != nil {
			return fmt.Errorf("model.vocab[%q]: %w", text, err)
		}
		id, err := s.integer()
		if err != nil {
			return fmt.Errorf("model.vocab[%q]: %w", text, err)
		}
		spelled, ok := spell.bytes(text)
		if !ok {
			d.literals = append(d.literals, id)
		}
		entries = append(entries, vocabEntry{spelled, id, !ok})
	}
	return d.setVocab(entries)
}

func (d *definition) setVocab(entries []vocabEntry) (err error) {
	if len(entries) == 0 {
		return fmt.Errorf("model.vocab: empty")
	}
	if d.vocab, err = newVocabulary(entries); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	return nil
}

// parseScores reads [["text", score], ...], where the place is the id.
func (d *definition) parseScores(raw []byte, byteLevel bool) error {
	s := jsonScanner{data: raw}
	spell := spelling{byteLevel: byteLevel}
	var entries []vocabEntry
	err := s.array(func(i int) error {
		if i > maxTokenID {
			return fmt.Errorf("model.vocab: more than %d tokens", maxTokenID)
		}
		text, score, err := s.scoredPiece()
		if err != nil {
			return fmt.Errorf("model.vocab[%d]: %w", i, err)
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

func (s *jsonScanner) scoredPiece() (text []byte, score float64, err error) {
	if err := s.take('['); err != nil {
		return nil, 0, err
	}
	if text, err = s.str(); err != nil {
		return nil, 0, err
	}
	if err := s.take(','); err != nil {
		return nil, 0, err
	}
	number, err := s.number()
	if err != nil {
		return nil, 0, err
	}
	if score, err = parseScore(number); err != nil {
		return nil, 0, err
	}
	return text, score, s.take(']')
}

// parseScore reads a number as the reference does: in one division, which can
// be off by the last bit. Where two ways to cut a word are equally good but
// for that bit, it decides.
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
		if digits > (math.MaxUint64-uint64(c-'0'))/10 { // the rest is ignored
			exponent += max(len(whole)-i, 0)
			break
		}
		digits = digits*10 + uint64(c-'0')
		if i >= len(whole) {
			exponent--
		}
	}
	if exponent < -maxExactPower || exponent > maxExactPower {
		return exact, nil // no score is so far from 1
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
	s := jsonScanner{data: raw}
	m := merger{definition: d, spell: spelling{byteLevel: byteLevel}}
	err := s.array(func(i int) error {
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
		return fmt.Errorf("model.merges: %w", err)
	}
	d.merges = m.table()
	return nil
}

// byteTokens is the ids of the tokens that stand for one byte each, where the
// model falls back on them; noToken elsewhere.
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

// byteTokenName is the text of the token that stands for one byte.
func byteTokenName(b byte) string {
	const hexDigits = "0123456789ABCDEF"
	return string([]byte{'<', '0', 'x', hexDigits[b>>4], hexDigits[b&15], '>'})
}
