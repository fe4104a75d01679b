package token

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

type object = map[string]any

// makeJSON returns a tokenizer.json with the given fields changed.
func makeJSON(t *testing.T, model object, fields object) []byte {
	t.Helper()
	file := object{"version": "1.0", "added_tokens": []any{}, "normalizer": nil, "pre_tokenizer": nil, "post_processor": nil, "decoder": nil}
	maps.Copy(file, fields)
	file["model"] = model
	return must.Get(json.Marshal(file))(t)
}

func makeTokenizer(t *testing.T, model object, fields object) *Tokenizer {
	t.Helper()
	d := must.Get(parse(makeJSON(t, model, fields), "tokenizer.json"))(t)
	return must.Get(newTokenizer(d, "test"))(t)
}

// byteVocab returns a byte-level vocabulary: every byte, and one token per merge.
func byteVocab(merges ...string) object {
	vocab := object{}
	for b := range 256 {
		vocab[string(byteRunes[b])] = b
	}
	for i, m := range merges {
		vocab[strings.ReplaceAll(m, " ", "")] = 256 + i
	}
	return object{"type": "BPE", "vocab": vocab, "merges": append([]string{}, merges...)}
}

var byteLevelFields = object{
	"pre_tokenizer": object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
	"decoder":       object{"type": "ByteLevel"},
}

func TestByteLevelBPE(t *testing.T) {
	tok := makeTokenizer(t, byteVocab("t h", "th e", "Ġ the", "h e", "Ġ t"), byteLevelFields)
	for text, want := range map[string][]int32{
		"":         nil,
		"the":      {257},
		" the":     {258},
		"the the":  {257, 258},
		"he":       {259},
		" t":       {260},
		"é":        {0xc3, 0xa9},
		"\xff":     {0xef, 0xbf, 0xbd}, // as U+FFFD
		"\xe4\xb8": {0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd},
	} {
		if got := tok.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
	for _, text := range corpus {
		want := strings.ToValidUTF8(string([]rune(text)), "")
		if got := tok.Decode(tok.Encode(text, true), false); got != want {
			t.Errorf("decoded %q, want %q", got, want)
		}
	}
	if got := tok.Decode([]int32{0xe4, 0xb8, 'a', 0xff, 9999}, false); got != "\uFFFDa\uFFFD" {
		t.Errorf("decoded %q", got)
	}
}

// TestMergeHeapSameAsScan checks that the heap for long words and the scan for short
// words give the same result.
func TestMergeHeapSameAsScan(t *testing.T) {
	tok := makeTokenizer(t, byteVocab("a b", "ab a", "b a", "aba b", "ab ab", "a a", "aa a", "ba b"), nil)
	m, ok := tok.model.(*bpe)
	if !ok {
		t.Fatalf("model is %T", tok.model)
	}
	for n := 2; n <= scanLimit; n++ {
		for seed := range 40 {
			symbols := make([]int32, n)
			for i := range symbols {
				symbols[i] = 'a' + int32(seed>>(i%6)+i*i*seed)%2
			}
			long := slices.Clone(symbols)
			short := symbols[:mergeSymbols(m.merges, symbols)]
			long = long[:newMergeHeap(m.merges, long).run()]
			if !slices.Equal(short, long) {
				t.Fatalf("%d symbols: %v by scan, %v by heap", n, short, long)
			}
		}
	}
}

// spmVocab returns a SentencePiece-style vocabulary with byte fallback.
func spmVocab() object {
	vocab := object{"<unk>": 0, "<s>": 1}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = 2 + b
	}
	next := 258
	add := func(tokens ...string) {
		for _, s := range tokens {
			vocab[s] = next
			next++
		}
	}
	add("▁", "a", "b", "c", "▁▁", "▁a", "ab", "▁ab", "c▁")
	return object{
		"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": true, "vocab": vocab,
		"merges": [][]string{{"c", "▁"}, {"▁", "▁"}, {"a", "b"}, {"▁", "ab"}, {"▁", "a"}},
	}
}

var spmFields = object{
	"normalizer": object{"type": "Sequence", "normalizers": []any{
		object{"type": "Prepend", "prepend": "▁"},
		object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
	}},
	"added_tokens": []any{object{"id": 1, "content": "<s>", "special": true}},
	"post_processor": object{
		"type":   "TemplateProcessing",
		"single": []any{object{"SpecialToken": object{"id": "<s>"}}, object{"Sequence": object{"id": "A"}}}, "special_tokens": object{"<s>": object{"ids": []int{1}}},
	},
	"decoder": object{"type": "Sequence", "decoders": []any{
		object{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
		object{"type": "ByteFallback"},
		object{"type": "Fuse"},
		object{"type": "Strip", "content": " ", "start": 1, "stop": 0},
	}},
}

func TestSentencePieceStyleBPE(t *testing.T) {
	tok := makeTokenizer(t, spmVocab(), spmFields)
	names := func(ids []int32) string {
		var all []string
		for _, id := range ids {
			name, _ := tok.Token(id)
			all = append(all, name)
		}
		return strings.Join(all, " ")
	}
	for text, want := range map[string]string{
		"ab ab":    "▁ab ▁ab",
		"  ab":     "▁▁ ▁ab",
		"c ab":     "▁ c▁ ab", // c▁ is a token, so there is no cut after c
		"b a":      "▁ b ▁a",
		"é":        "▁ <0xC3> <0xA9>",
		"a<s>ab":   "▁a <s> ▁ab",
		"a <s> ab": "▁a ▁ <s> ▁▁ ab",
	} {
		if got := names(tok.Encode(text, false)); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
		if got := tok.Decode(tok.Encode(text, true), true); !strings.Contains(text, "<s>") && got != text {
			t.Errorf("%q decodes to %q", text, got)
		}
	}
	if got := names(tok.Encode("a", true)); got != "<s> ▁a" {
		t.Errorf("with specials: %s", got)
	}
	if tok.Overhead() != 1 {
		t.Errorf("overhead %d, want 1", tok.Overhead())
	}
	if diff := cmp.Diff([]Special{{1, "<s>"}}, tok.Specials()); diff != "" {
		t.Error(diff)
	}
	// Cutting a text is only an optimization: the result is the same without cuts.
	uncut := makeTokenizer(t, spmVocab(), spmFields)
	whole, ok := uncut.model.(*bpe)
	if !ok {
		t.Fatalf("model is %T", uncut.model)
	}
	whole.uncut = nil
	for _, text := range corpus {
		if got, want := tok.Encode(text, false), uncut.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("%q: %v with cuts, %v without", text, got, want)
		}
	}
}

// TestUnigramTie uses scores that differ by the last bit if parsed exactly; then "a" and
// "b" would beat "ab". The reference parses the longer number less exactly and sees a
// tie.
func TestUnigramTie(t *testing.T) {
	model := object{"type": "Unigram", "unk_id": 0, "vocab": json.RawMessage(
		`[["<unk>",0],["a",-7.6182780265808105],["b",0],["ab",-7.618278026580811]]`)}
	tok := makeTokenizer(t, model, nil)
	if got := tok.Encode("ab", false); !slices.Equal(got, []int32{3}) {
		t.Errorf("%v, want [3]", got)
	}
	for text, want := range map[string]float64{
		"-7.6182780265808105": -7.618278026580811, "-0.1": -0.1, "3": 3, "-12": -12, "1e2": 100, "1E-3": 0.001, "-1.5e+1": -15,
		"-7.61827802658081054687500": -7.6182780265808105, "184467440737095516150.0": 184467440737095516150,
	} {
		if got, err := parseScore([]byte(text)); got != want || err != nil {
			t.Errorf("%s is %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestUnigram(t *testing.T) {
	model := object{"type": "Unigram", "unk_id": 0, "vocab": []any{
		[]any{"<unk>", 0.0}, []any{"▁", -3.0}, []any{"a", -2.0}, []any{"b", -2.5}, []any{"ab", -3.0}, []any{"▁a", -4.0}, []any{"▁ab", -5.5}, []any{"xx", -14.0},
	}}
	fields := object{
		"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
		"decoder":       object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
	}
	tok := makeTokenizer(t, model, fields)
	for text, want := range map[string][]int32{
		"ab": {6}, "aab": {5, 4}, "b": {1, 3}, "xyz": {1, 0}, "ayyb": {5, 0, 3}, "axxb": {5, 7, 3}, "axxxb": {5, 0, 7, 3}, "a b": {5, 1, 3}, "": nil,
	} {
		if got := tok.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
	if got := tok.Decode([]int32{6, 1, 3}, false); got != "ab b" {
		t.Errorf("decoded %q", got)
	}
}

func TestWordPiece(t *testing.T) {
	model := object{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 8, "vocab": object{
		"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "hel": 4, "##lo": 5, "##s": 6, ",": 7, "中": 8, "!": 9,
	}}
	tok := makeTokenizer(t, model, object{
		"normalizer":     object{"type": "BertNormalizer"},
		"pre_tokenizer":  object{"type": "BertPreTokenizer"},
		"post_processor": object{"type": "BertProcessing", "sep": []any{"[SEP]", 2}, "cls": []any{"[CLS]", 1}},
		"decoder":        object{"type": "WordPiece", "prefix": "##", "cleanup": true},
	})
	for text, want := range map[string][]int32{
		"Hello, héllos!": {3, 7, 3, 6, 9}, "中hello中": {8, 3, 8}, "xyz hello": {0, 3}, "hellolololo": {0}, "\u200b\x00": nil,
	} {
		if got := tok.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
	if got := tok.Encode("hello", true); !slices.Equal(got, []int32{1, 3, 2}) {
		t.Errorf("with specials: %v", got)
	}
	if got := tok.Decode([]int32{3, 6, 7, 3, 9}, false); got != "hellos, hello!" {
		t.Errorf("decoded %q", got)
	}
}

func TestAddedTokenFlags(t *testing.T) {
	fields := object{"added_tokens": []any{
		object{"id": 300, "content": "<l>", "lstrip": true},
		object{"id": 301, "content": "<r>", "rstrip": true},
		object{"id": 302, "content": "word", "single_word": true},
		object{"id": 303, "content": "<lo", "special": true},
		object{"id": 304, "content": "<longest>"},
		object{"id": 305, "content": "UP", "normalized": true},
	}, "normalizer": object{"type": "Lowercase"}, "pre_tokenizer": object{"type": "ByteLevel", "use_regex": false}, "decoder": object{"type": "ByteLevel"}}
	tok := makeTokenizer(t, byteVocab(), fields)
	const l, r, word, lo, longest, up = 256, 257, 258, 259, 260, 261 // the next free ids, regardless of the ids in the file
	for text, want := range map[string][]int32{
		"a  <l> b":      {'a', l, ' ', 'b'},
		"a <r>  b":      {'a', ' ', r, 'b'},
		"word":          {word},
		"a word, words": {'a', ' ', word, ',', ' ', 'w', 'o', 'r', 'd', 's'},
		"<longest><lo>": {longest, lo, '>'},
		"UP up":         {up, ' ', up},
		"<r> <l>":       {r, l},
	} {
		if got := tok.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
	if got := tok.Decode([]int32{lo, 'a', l}, true); got != "a<l>" {
		t.Errorf("decoded without specials: %q", got)
	}
}

func TestBrokenFilesNameTheField(t *testing.T) {
	bad := func(change func(model, fields object)) []byte {
		model, fields := byteVocab("t h"), object{}
		change(model, fields)
		return makeJSON(t, model, fields)
	}
	for field, data := range map[string][]byte{
		"model: missing":                 []byte(`{"version":"1.0"}`),
		"model.vocab: missing":           []byte(`{"model":{"type":"BPE"}}`),
		"model.merges: missing":          []byte(`{"model":{"type":"BPE","vocab":{"a":0}}}`),
		"model.type":                     []byte(`{"model":{"type":"Magic","vocab":{"a":0}}}`),
		`model.vocab["a"]`:               []byte(`{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`),
		"model.vocab: empty":             []byte(`{"model":{"type":"BPE","vocab":{},"merges":[]}}`),
		"model.vocab: the highest":       []byte(`{"model":{"type":"BPE","vocab":{"a":16000000},"merges":[]}}`),
		"model.vocab[1]":                 []byte(`{"model":{"type":"Unigram","vocab":[["a",0],["b","x"]]}}`),
		"model.unk_id":                   []byte(`{"model":{"type":"Unigram","vocab":[["a",0]]}}`),
		"model.unk_token":                []byte(`{"model":{"type":"WordPiece","vocab":{"a":0}}}`),
		"model.vocab: not a JSON object": []byte(`{"model":{"type":"BPE","vocab":[1],"merges":[]}}`),
		"model.merges[0]":                bad(func(m, _ object) { m["merges"] = []string{"t x y"} }),
		`model.merges[1]: token "thq"`:   bad(func(m, _ object) { m["merges"] = []string{"t h", "th q"} }),
		"model.dropout":                  bad(func(m, _ object) { m["dropout"] = 0.1 }),
		"added_tokens":                   bad(func(_, f object) { f["added_tokens"] = "x" }),
		"normalizer.type: \"Magic\"":     bad(func(_, f object) { f["normalizer"] = object{"type": "Magic"} }),
		"normalizer.normalizers[1]": bad(func(_, f object) {
			f["normalizer"] = object{"type": "Sequence", "normalizers": []any{object{"type": "NFC"}, object{"type": "Precompiled", "precompiled_charsmap": "!"}}}
		}),
		"pre_tokenizer.pretokenizers[0]": bad(func(_, f object) {
			f["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{object{"type": "Split", "behavior": "Magic"}}}
		}),
		"pre_tokenizer (FixedLength): length": bad(func(_, f object) { f["pre_tokenizer"] = object{"type": "FixedLength", "length": 0} }),
		"pre_tokenizer (Split)": bad(func(_, f object) {
			f["pre_tokenizer"] = object{"type": "Split", "behavior": "Isolated", "pattern": object{"Regex": "(a"}}
		}),
		"post_processor (TemplateProcessing): special_tokens": bad(func(_, f object) {
			f["post_processor"] = object{"type": "TemplateProcessing", "single": []any{object{"SpecialToken": object{"id": "x"}}}}
		}),
		"decoder.type":                              bad(func(_, f object) { f["decoder"] = object{"kind": "x"} }),
		"unexpected end":                            []byte(`{"model":{"type":"BPE","vocab":{"a":0`),
		"after the document":                        []byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}} x`),
		"the file is empty":                         []byte(" \n"),
		"protocol buffer":                           []byte("\x00\x01garbage"),
		"no piece of type UNK":                      {0x0a, 0x03, 0x0a, 0x01, 'a'},
		"no known encoding":                         []byte("YQ== 0\nYg== 1\n"),
		"tiktoken file: line 2":                     []byte("YQ== 0\nYg== x\n"),
		"line 4: rank 0 repeats the rank of line 1": []byte("YQ== 0\nYg== 1\n\nYWI= 0\n"),
		"line 3: \"YWI\" is not a token in base64":  []byte("YQ== 0\nYg== 1\nYWI 2\n"),
	} {
		path := filepath.Join(t.TempDir(), "tokenizer")
		must.Do(t, os.WriteFile(path, data, 0o600))
		if _, err := load(path, ""); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("want an error with %q, got %v", field, err)
		}
	}
}

func TestConcurrentEncode(t *testing.T) {
	tok := makeTokenizer(t, byteVocab("t h", "th e", "Ġ the"), byteLevelFields)
	text := englishText(4000)
	want := tok.Encode(text, false)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if got := tok.Encode(text, false); !slices.Equal(got, want) {
					t.Error("ids differ between goroutines")
				}
				if n, err := tok.Count(t.Context(), text); err != nil || n != len(want) {
					t.Errorf("Count = %d, %v, want %d", n, err, len(want))
				}
			}
		})
	}
	group.Wait()
}

func FuzzLoad(f *testing.F) {
	t := &testing.T{}
	f.Add(makeJSON(t, byteVocab("t h"), byteLevelFields), "the text")
	f.Add(makeJSON(t, spmVocab(), spmFields), "ab ab é")
	f.Add([]byte(`{"model":{"type":"Unigram","unk_id":0,"vocab":[["a",-1],["b",-2]]},"normalizer":{"type":"NFKC"}}`), "abc")
	f.Add([]byte(`{"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"##b":7}},"pre_tokenizer":{"type":"Whitespace"}}`), "abb b")
	f.Add([]byte("YQ== 0\nYg== 1\nYWI= 2\n"), "abab")
	f.Add(makeModel(spBPE), "ab ab")
	f.Add(makeTekken(t, nil), "the <s>")
	f.Add([]byte(`{"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"b":1}},"pre_tokenizer":{"type":"FixedLength","length":2},"decoder":{"type":"CTC"}}`), "abb b")
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"UnicodeScripts"}]}}`), "aжb 漢")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if len(data) > 1<<20 || len(text) > 1<<12 {
			return
		}
		tok, err := newRankTokenizer(data, "cl100k_base") // the only format identified by its number of ranks
		if err != nil || len(data) == 0 {
			d, err := parse(data, "tokenizer")
			if err != nil {
				return
			}
			if tok, err = newTokenizer(d, "fuzz"); err != nil {
				return
			}
		}
		ids := tok.Encode(text, true)
		tok.Decode(ids, false)
		for _, id := range ids {
			if id < 0 || id > maxTokenID {
				t.Errorf("id %d", id)
			}
		}
	})
}
