package token

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestLoadCached(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"byte level":    makeJSON(t, byteVocab("t h", "th e", "Ġ the"), byteLevelFields),
		"sentencepiece": makeJSON(t, spmVocab(), spmFields),
		"unigram":       makeModel(spUnigram),
		"literal token": makeJSON(t, object{"type": "BPE", "vocab": object{"a": 0, "Ġ": 1, " ": 2, "中": 3}, "merges": []string{}}, byteLevelFields),
	} {
		t.Run(name, func(t *testing.T) {
			path, cache := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "cache")
			must.Do(t, os.WriteFile(path, data, 0o600))
			first := must.Get(load(path, cache))(t)
			compiled := filepath.Join(cache, compiledName(data, nil))
			d := must.Get(readCompiled(compiled))(t)
			second := must.Get(newTokenizer(d, path))(t)
			for id := range int32(first.VocabSize()) {
				got, _ := second.Token(id)
				if want, _ := first.Token(id); got != want {
					t.Errorf("token %d is %q from the cache, %q from the file", id, got, want)
				}
			}
			for _, text := range corpus {
				if got, want := second.Encode(text, true), first.Encode(text, true); !slices.Equal(got, want) {
					t.Errorf("%q: %v from the cache, %v from the file", text, got, want)
				}
				ids := first.Encode(text, true)
				if got, want := second.Decode(ids, false), first.Decode(ids, false); got != want {
					t.Errorf("%q: decoded %q from the cache, %q from the file", text, got, want)
				}
			}
		})
	}
}

// TestBrokenCache checks that a truncated or modified cache file is ignored.
func TestBrokenCache(t *testing.T) {
	data := makeJSON(t, byteVocab("t h"), byteLevelFields)
	path, cache := filepath.Join(t.TempDir(), "file"), t.TempDir()
	must.Do(t, os.WriteFile(path, data, 0o600))
	must.Get(load(path, cache))(t)
	compiled := filepath.Join(cache, compiledName(data, nil))
	good := must.Get(os.ReadFile(compiled))(t)
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for _, bad := range [][]byte{nil, good[:10], good[:len(good)/2], good[:len(good)-1], flipped, append(slices.Clone(good), 0)} {
		if _, err := parseCompiled(bad); err == nil {
			t.Errorf("%d bytes of %d: no error", len(bad), len(good))
		}
		must.Do(t, os.WriteFile(compiled, bad, 0o600))
		tok := must.Get(load(path, cache))(t)
		if got := tok.Encode("th", false); !slices.Equal(got, []int32{256}) {
			t.Errorf("%v", got)
		}
	}
	if _, err := load(path, filepath.Join(path, "not a directory")); err != nil {
		t.Errorf("a cache that cannot be written: %v", err)
	}
}

func FuzzCompiled(f *testing.F) {
	f.Add([]byte(compiledMagic))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = parseCompiled(data) // must not panic
	})
}
