package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	fuzzing "github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
)

// asciiVocab returns the printable ASCII characters with their ids.
func asciiVocab() map[string]int {
	vocab := map[string]int{}
	for c := rune(' '); c < 127; c++ {
		vocab[string(c)] = int(c - ' ')
	}
	return vocab
}

// A bomb is a tokenizer.json of a BPE model with the given parts.
type bomb map[string]any

func (b bomb) file() []byte {
	model := map[string]any{"type": "BPE", "vocab": asciiVocab(), "merges": []string{}}
	file := map[string]any{"model": model, "added_tokens": []any{}}
	for name, v := range b {
		if _, ok := model[name]; ok {
			model[name] = v
		} else {
			file[name] = v
		}
	}
	out, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return out
}

func repeated(n int, v any) []any { return slices.Repeat([]any{v}, n) }

func sequenceOf(key string, parts []any) any { return map[string]any{"type": "Sequence", key: parts} }

func replacing(content string) any {
	return map[string]any{"type": "Replace", "pattern": map[string]any{"String": "e"}, "content": content}
}

func splitting(expr string) any {
	return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": expr}, "behavior": "Isolated"}
}

// longWord returns the printable ASCII characters and a token of 50 letters.
func longWord() map[string]int {
	vocab := asciiVocab()
	vocab[strings.Repeat("e", 50)] = len(vocab)
	return vocab
}

// colliding returns tokens with neighbouring hashes.
func colliding(n int) map[string]int {
	vocab := asciiVocab()
	for i := 0; len(vocab) < n; i++ {
		if text := fmt.Sprintf("t%d", i); hashString(text)&(1<<17-1) < 1<<15 {
			vocab[text] = len(vocab)
		}
	}
	return vocab
}

func tokenizerBombs() map[string]bomb {
	byteLevel := map[string]any{"type": "ByteLevel", "add_prefix_space": false}
	nested := any(map[string]any{"type": "NFC"})
	for range 50 {
		nested = sequenceOf("normalizers", []any{nested})
	}
	surround := map[string]any{
		"type": "TemplateProcessing", "special_tokens": map[string]any{"A": map[string]any{"ids": repeated(1000, 1)}},
		"single": append(repeated(1000, map[string]any{"SpecialToken": map[string]any{"id": "A"}}), map[string]any{"Sequence": map[string]any{"id": "A"}}),
	}
	return map[string]bomb{
		"expanding replacements": {"normalizer": sequenceOf("normalizers", repeated(30, replacing("ee")))},
		"long replacement":       {"normalizer": replacing(strings.Repeat("x", 1<<20))},
		"long prefix":            {"normalizer": map[string]any{"type": "Prepend", "prepend": strings.Repeat("x", 1<<20)}},
		"expanding bytes":        {"normalizer": sequenceOf("normalizers", append([]any{replacing("é")}, repeated(30, byteLevel)...))},
		"expanding pieces":       {"pre_tokenizer": sequenceOf("pretokenizers", repeated(30, byteLevel)), "normalizer": replacing("é")},
		"many normalizers":       {"normalizer": sequenceOf("normalizers", repeated(300, replacing("ee")))},
		"nested normalizers":     {"normalizer": nested},
		"special tokens":         {"post_processor": surround},
		"simple expression":      {"pre_tokenizer": splitting(strings.Repeat("[a-z ]*", 12) + "[0-9]")},
		"expression of pieces":   {"pre_tokenizer": sequenceOf("pretokenizers", []any{map[string]any{"type": "FixedLength", "length": 32}, splitting(strings.Repeat("[a-z ]*", 4) + "[0-9]")})},
		"replaced expression":    {"normalizer": map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": strings.Repeat("[a-z ]*", 12) + "[0-9]"}, "content": "x"}},
		"lookaheads":             {"pre_tokenizer": splitting(strings.Repeat(`(?![0-9])`, 5000) + "[0-9]")},
		"expanding decoder":      {"decoder": sequenceOf("decoders", repeated(30, replacing("ee")))},
		"decoded expression":     {"decoder": map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": strings.Repeat("[a-z]*", 90) + "[0-9]"}, "content": "x"}, "vocab": longWord()},
		"long expression":        {"pre_tokenizer": splitting(strings.Repeat(`\p{L}|`, 1<<16) + "x")},
		"long token":             {"vocab": map[string]int{"a": 0, strings.Repeat("a", 1<<16): 1}},
		"colliding tokens":       {"vocab": colliding(40_000)},
		"long added token":       {"added_tokens": []any{map[string]any{"id": 99, "content": strings.Repeat("a", 1<<16)}}},
		"many added tokens":      {"added_tokens": repeated(3<<20, map[string]any{})},
	}
}

// TestTokenizerBombs checks that a tokenizer that needs too much time or memory is an error that names the file, when it
// is loaded or when it encodes the first text.
func TestTokenizerBombs(t *testing.T) {
	for name, b := range tokenizerBombs() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokenizer.json")
			must.Do(t, os.WriteFile(path, b.file(), 0o600))
			tok, err := Open(path, "")
			if err == nil {
				text := strings.Repeat("the end of the text ", 500)
				tok.Decode(tok.Encode(text, true), false)
				if tok.Err() == nil {
					t.Error("Err is nil")
				}
				_, err = tok.Count(context.Background(), text) // returns at once
			}
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "deeper than") {
				t.Errorf("%v, want an error that names the file and the limit", err)
			}
		})
	}
}

// TestGeneralEngineIsBounded checks that an expression that needs too much time is an error.
func TestGeneralEngineIsBounded(t *testing.T) {
	defer func(was time.Duration) { maxMatch = was }(maxMatch)
	maxMatch = time.Millisecond // without a limit, the search ends after years
	d := must.Get(parse(bomb{"pre_tokenizer": splitting(`([a-z ]+)+\1[0-9]`)}.file(), "tokenizer.json"))(t)
	tok := must.Get(newTokenizer(d, "tokenizer.json"))(t)
	var limit *LimitError
	if n, err := tok.Count(context.Background(), strings.Repeat("the end of the text ", 50)+"7"); !errors.As(err, &limit) {
		t.Errorf("%d tokens, %v, want a LimitError", n, err)
	}
}

// TestWorkOfPiecesAddsUp checks that the general engine takes its time from the work on the text, so that a text of many
// pieces has no more time.
func TestWorkOfPiecesAddsUp(t *testing.T) {
	find := must.Get(findExpr(`\ba`))(t)
	text := strings.Repeat("a b ", 1000)
	w := newWork(len(text))
	before := w.search
	find(&w, nil, text)
	if w.search >= before {
		t.Errorf("%v left of %v", w.search, before)
	}
	w.search = 0
	if err := bounded("tokenizer.json", func() error { find(&w, nil, text); return nil }); err == nil {
		t.Error("no error without time")
	}
}

// TestRanksAreBounded checks the limits of the other formats.
func TestRanksAreBounded(t *testing.T) {
	long := strings.Repeat("QUFB", 1<<12)
	for name, data := range map[string]string{
		"a.tiktoken": "QQ== 0\n" + long + " 1\n",
	} {
		if _, err := parse([]byte(data), name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var pieces []byte
	for range 3 { // a piece of one text
		text := strings.Repeat("a", 1<<13)
		piece := append([]byte{1<<3 | 2, 0x80, 0x40}, text...)
		pieces = append(pieces, 1<<3|2, byte(len(piece))|0x80, byte(len(piece)>>7))
		pieces = append(pieces, piece...)
	}
	pieces = append(pieces, 1<<3|2, 2, 3<<3, 2) // the unknown piece
	if _, err := parse(pieces, "a.model"); err == nil || !strings.Contains(err.Error(), "a token of 8192 bytes") {
		t.Errorf("SentencePiece: %v", err)
	}
}

// FuzzTokenizerFile parses and uses tokenizer files within the limits.
func FuzzTokenizerFile(f *testing.F) {
	f.Add(bomb{}.file(), "text")
	for name, b := range tokenizerBombs() {
		if file := b.file(); len(file) < 1<<16 && name != "simple expression" {
			f.Add(file, "the end")
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		if len(text) > 1000 || strings.Contains(string(file), "Regex") { // the limit of a regular expression is many seconds
			return
		}
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		must.Do(t, os.WriteFile(path, file, 0o600))
		fuzzing.Run(t, 1<<30, func() {
			tok, err := Open(path, "")
			if err != nil {
				return
			}
			ids := tok.Encode(text, true)
			if most := maxSurround + 4*(maxGrowth*len(text)+growthFree); len(ids) > most {
				t.Errorf("%d ids of a text of %d bytes", len(ids), len(text))
			}
			tok.Decode(ids, false)
		})
	})
}
