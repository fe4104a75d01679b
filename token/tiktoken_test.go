package token

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token/internal/ranks"
)

// newRankTokenizer loads a rank file with only some ranks of an encoding.
func newRankTokenizer(data []byte, encoding string) (*Tokenizer, error) {
	entries, err := parseRankLines(data)
	if err != nil {
		return nil, err
	}
	d, err := newRankDefinition(entries)
	if err != nil {
		return nil, err
	}
	if err := d.setEncoding(findSpec(encoding)); err != nil {
		return nil, err
	}
	return newTokenizer(d, "test")
}

func TestTiktokenFile(t *testing.T) {
	tok := must.Get(newRankTokenizer([]byte("YQ== 0\nYg== 1\n\nYWI= 2\nIGFi 3\nIGE= 4\nIA== 5\n"), "cl100k_base"))(t)
	if got, want := tok.Encode("ab ab  aab<|endoftext|>", false), []int32{2, 3, 5, 4, 2, 100257}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := tok.Decode([]int32{2, 3, 100257}, true); got != "ab ab" {
		t.Errorf("decoded %q", got)
	}
}

// writeR50K writes GPT-2's rank file up to a rank into a directory.
func writeR50K(t *testing.T, dir, name string, upTo int) string {
	t.Helper()
	tokens := must.Get(ranks.Tokens(ranks.R50K))(t)
	var b strings.Builder
	for rank, token := range tokens[:upTo] {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(token.Text), rank)
	}
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// TestTiktokenFileOfKnownSize checks that a file is identified by its number of ranks,
// and that a truncated file is rejected.
func TestTiktokenFileOfKnownSize(t *testing.T) {
	tok := must.Get(load(writeR50K(t, t.TempDir(), "tiktoken.model", 50256), ""))(t)
	if got, want := tok.Encode("Hello<|endoftext|>", false), []int32{15496, 50256}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for name, want := range map[string]string{"tiktoken.model": "no known encoding", "r50k_base.tiktoken": "r50k_base has 50256"} {
		if _, err := load(writeR50K(t, t.TempDir(), name, 50000), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestTiktokenListedSpecials checks that special tokens in tokenizer_config.json override
// the encoding's, also if the rank file comes from the cache.
func TestTiktokenListedSpecials(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	path := writeR50K(t, dir, "tiktoken.model", 50256)
	const text = "Hello<|endoftext|><|im_end|>"
	for config, want := range map[string][]int32{
		`{}`: {15496, 50256, 27, 91, 320, 62, 437, 91, 29},
		`{"added_tokens_decoder":{"50257":{"content":"<|im_end|>","special":true}}}`:                      {15496, 50256, 50257},
		`{"added_tokens_decoder":{"50256":{"content":"<|im_end|>"},"50300":{"content":"<|endoftext|>"}}}`: {15496, 50300, 50256},
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, configFile), []byte(config), 0o600))
		for range 2 {
			tok := must.Get(load(path, cache))(t)
			if got := tok.Encode(text, false); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", config, got, want)
			}
		}
	}
	for config, want := range map[string]string{
		`{"added_tokens_decoder":{"x":{"content":"<|im_end|>"}}}`: `tokenizer_config.json: added_tokens_decoder["x"]`,
		`{"added_tokens_decoder":{"7":{}}}`:                       `tokenizer_config.json: added_tokens_decoder["7"]`,
		`{"added_tokens_decoder":7}`:                              "tokenizer_config.json: json",
	} {
		if err := (&definition{}).setListed([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

func FuzzListedSpecials(f *testing.F) {
	f.Add([]byte(`{"added_tokens_decoder":{"50257":{"content":"<|im_end|>","special":true,"lstrip":true,"normalized":true}}}`), "a <|im_end|> b")
	f.Fuzz(func(t *testing.T, config []byte, text string) {
		entries := must.Get(parseRankLines([]byte("YQ== 0\nYg== 1\nYWI= 2\nIA== 3\n")))(t)
		d := must.Get(newRankDefinition(entries))(t)
		must.Do(t, d.setEncoding(findSpec("cl100k_base")))
		if d.setListed(config) != nil {
			return
		}
		tok, err := newTokenizer(d, "fuzz")
		if err != nil {
			return
		}
		tok.Decode(tok.Encode(text, true), false)
	})
}
