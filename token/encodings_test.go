package token

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestBuiltin compares ids with tiktoken's ids. The oracle test does the same for many
// more texts.
func TestBuiltin(t *testing.T) {
	const text = "Hello, world! 1234567   It's   naïve."
	for _, test := range []struct {
		name, shown string
		want        []int32
	}{
		{"gpt-2", "built-in gpt2 of gpt-2", []int32{15496, 11, 995, 0, 17031, 2231, 3134, 220, 220, 632, 338, 220, 220, 41492, 13}},
		{"p50k_edit", "built-in p50k_edit", []int32{15496, 11, 995, 0, 17031, 2231, 3134, 50257, 632, 338, 50257, 41492, 13}},
		{"cl100k_base", "built-in cl100k_base", []int32{9906, 11, 1917, 0, 220, 4513, 10961, 22, 256, 1102, 596, 256, 95980, 588, 13}},
		{"gpt-4o", "built-in o200k_base of gpt-4o", []int32{13225, 11, 2375, 0, 220, 7633, 19354, 22, 256, 7744, 256, 153475, 737, 13}},
	} {
		tok := must.Get(Builtin(test.name))(t)
		if tok.Name() != test.shown {
			t.Errorf("%s is called %q, want %q", test.name, tok.Name(), test.shown)
		}
		got := tok.Encode(text, true)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		if back := tok.Decode(got, false); back != text {
			t.Errorf("%s: decoded %q", test.name, back)
		}
	}
}

func TestEncodingOfModel(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-4": "cl100k_base", "gpt-4-turbo": "cl100k_base", "gpt-4o-2024-11-20": "o200k_base", "gpt-5-mini": "o200k_base", "o3": "o200k_base",
		"ft:gpt-4o-mini:x": "o200k_base", "ft:gpt-4:x": "cl100k_base", "gpt-oss-120b": "o200k_harmony", "openai/gpt-oss-20b": "o200k_harmony",
		"text-embedding-3-large": "cl100k_base", "davinci": "r50k_base", "text-davinci-003": "p50k_base", "code-davinci-edit-001": "p50k_edit",
		"gpt-2": "gpt2", "gpt-6": "", "o3x": "",
	} {
		if got, ok := encodingOf(name); got != want || ok != (want != "") {
			t.Errorf("%s has the encoding %q (%v), want %q", name, got, ok, want)
		}
	}
}

func TestBuiltinSpecials(t *testing.T) {
	tok := must.Get(Builtin("openai/gpt-oss-20b"))(t)
	if want := "built-in o200k_harmony of openai/gpt-oss-20b"; tok.Name() != want {
		t.Errorf("called %q, want %q", tok.Name(), want)
	}
	got := tok.Encode("<|start|>user<|message|>Hi<|end|><|endofprompt|><|reserved_200018|><|reserved_201087|>", false)
	if want := []int32{200006, 1428, 200008, 12194, 200007, 200018, 200018, 201087}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestBuiltinMerges checks that the merges stored in the tables equal the merges derived
// from the texts, and that no text appears twice.
func TestBuiltinMerges(t *testing.T) {
	for _, name := range []string{"p50k_base", "cl100k_base", "o200k_base"} { // p50k_base contains r50k_base
		got := must.Get(readBuiltin(findSpec(name)))(t)
		var entries []vocabEntry
		for id := range int32(got.vocab.size()) {
			if text := got.vocab.text(id); len(text) > 0 {
				entries = append(entries, vocabEntry{text: text, id: id})
			}
		}
		want := must.Get(newRankDefinition(entries))(t)
		merges := 0
		for i, key := range want.merges.keys {
			if key == 0 {
				continue
			}
			merges++
			if left, right := int32((key-1)>>32), int32(uint32(key-1)); got.merges.get(left, right) != want.merges.values[i] {
				t.Fatalf("%s: %d and %d merge into %x, want %x", name, left, right, got.merges.get(left, right), want.merges.values[i])
			}
		}
		for _, key := range got.merges.keys {
			if key != 0 {
				merges--
			}
		}
		if merges != 0 {
			t.Errorf("%s: %d merges more than there should be", name, -merges)
		}
	}
}

func TestBuiltinUnknown(t *testing.T) {
	for _, name := range []string{"", "gpt", "llama3", "meta-llama/Llama-3.1-8B", "o200k", "mygpt-4o"} {
		_, err := Builtin(name)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "cl100k_base, o200k_base, o200k_harmony") {
			t.Errorf("Builtin(%q): %v", name, err)
		}
	}
}

func BenchmarkBuiltin(b *testing.B) {
	for _, name := range []string{"cl100k_base", "o200k_base"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must.Get(Builtin(name))(b)
			}
		})
	}
}
