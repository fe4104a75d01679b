package token

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// makeTekken returns a tekken.json with every byte, a few more tokens and ten special
// tokens. change can modify its fields.
func makeTekken(t *testing.T, change func(config, file object)) []byte {
	t.Helper()
	var vocab []any
	add := func(text []byte) {
		vocab = append(vocab, object{"rank": len(vocab), "token_bytes": text, "token_str": nil}) // JSON encodes bytes in base64
	}
	for b := range 256 {
		add([]byte{byte(b)})
	}
	for _, text := range []string{"th", "the", " the", "ab", "not for this size"} {
		add([]byte(text))
	}
	config := object{"pattern": ` ?\p{L}+|\s+|.`, "num_vocab_tokens": len(vocab), "default_vocab_size": 270, "default_num_special_tokens": 10, "version": "v3"}
	file := object{"config": config, "vocab": vocab}
	if change != nil {
		change(config, file)
	}
	return must.Get(json.Marshal(file))(t)
}

func TestTekken(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "tekken.json"), makeTekken(t, nil), 0o600))
	for range 2 { // the second load uses the cache
		tok := must.Get(Open(dir, filepath.Join(dir, "cache")))(t)
		for text, want := range map[string][]int32{
			"the the": {267, 268},
			"ab":      {269},
			"<s>é":    {10 + '<', 10 + 's', 10 + '>', 10 + 0xc3, 10 + 0xa9}, // special tokens are not found in text
		} {
			if got := tok.Encode(text, false); !slices.Equal(got, want) {
				t.Errorf("Encode(%q) = %v, want %v", text, got, want)
			}
			if got := tok.Decode(tok.Encode(text, true), true); got != text {
				t.Errorf("%q decodes to %q", text, got)
			}
		}
		if got := tok.Encode("ab", true); !slices.Equal(got, []int32{1, 269}) {
			t.Errorf("with specials: %v", got)
		}
		if got := tok.Specials(); len(got) != 10 || got[3] != (Special{3, "[INST]"}) || tok.VocabSize() != 270 {
			t.Errorf("%d ids, specials %v", tok.VocabSize(), got)
		}
	}
}

func TestTekkenListedSpecials(t *testing.T) {
	d := must.Get(parse(makeTekken(t, func(config, file object) {
		config["version"] = "v13"
		file["special_tokens"] = []any{object{"rank": 0, "token_str": "<unk>"}, object{"rank": 1, "token_str": "[THINK]"}, object{"rank": 2, "token_str": "<s>"}}
	}), "tekken.json"))(t)
	tok := must.Get(newTokenizer(d, "test"))(t)
	if got, want := tok.Decode(tok.Encode("the", true), false), "<s>the"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, _ := tok.Token(9); got != "<SPECIAL_9>" {
		t.Errorf("token 9 is %q", got)
	}
}

func TestBrokenTekkenNamesTheField(t *testing.T) {
	entry := func(i int, fields object) func(config, file object) {
		return func(_, file object) {
			vocab := file["vocab"].([]any)
			maps.Copy(vocab[i].(object), fields)
		}
	}
	specials := func(list ...any) func(config, file object) {
		return func(_, file object) { file["special_tokens"] = list }
	}
	for field, change := range map[string]func(config, file object){
		"config: json":                           func(_, f object) { f["config"] = "x" },
		"config.pattern: missing":                func(c, _ object) { delete(c, "pattern") },
		"config.pattern: expression":             func(c, _ object) { c["pattern"] = "(a" },
		"config.default_num_special_tokens: 0":   func(c, _ object) { delete(c, "default_num_special_tokens") },
		"config.default_vocab_size: 10 must":     func(c, _ object) { c["default_vocab_size"] = 10 },
		"vocab: 261 tokens, but":                 func(c, _ object) { c["default_vocab_size"] = 1000 },
		"vocab: expected a list":                 func(_, f object) { f["vocab"] = 1 },
		"vocab[257].rank: 3, want 257":           entry(257, object{"rank": 3}),
		"vocab[257].rank: ":                      entry(257, object{"rank": "x"}),
		"vocab[258].token_bytes: \"!\" is not":   entry(258, object{"token_bytes": "!"}),
		"vocab[7].token_bytes: \"a\", want":      entry(7, object{"token_bytes": "YQ=="}),
		"vocab: ranks 267 and 269 have":          entry(259, object{"token_bytes": "dGhl"}),
		"special_tokens: missing, but":           func(c, _ object) { c["version"] = "v11" },
		"special_tokens: json":                   func(_, f object) { f["special_tokens"] = "x" },
		"special_tokens[0].rank: missing":        specials(object{"rank": 10, "token_str": "<s>"}),
		"special_tokens[1]: text \"a\" or":       specials(object{"rank": 0, "token_str": "a"}, object{"rank": 1, "token_str": "a"}),
		"special_tokens: <s> is missing":         specials(object{"rank": 0, "token_str": "<unk>"}),
		"special_tokens[1]: text \"b\" or rank ": specials(object{"rank": 0, "token_str": "a"}, object{"rank": 0, "token_str": "b"}),
	} {
		_, err := parse(makeTekken(t, change), "tekken.json")
		if err == nil || !strings.Contains(err.Error(), "tekken.json: "+field) {
			t.Errorf("want an error with %q, got %v", field, err)
		}
	}
}
