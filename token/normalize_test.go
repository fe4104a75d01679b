package token

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// makeCharsMap builds a character map for a few keys: a double-array trie with a separate
// block of 256 units for each node.
func makeCharsMap(replacements map[string]string) []byte {
	var text []byte
	type node struct {
		children map[byte]*node
		value    int // value of the key that ends here, or -1
	}
	root := &node{map[byte]*node{}, -1}
	for _, key := range slices.Sorted(maps.Keys(replacements)) {
		n := root
		for _, b := range []byte(key) {
			if n.children[b] == nil {
				n.children[b] = &node{map[byte]*node{}, -1}
			}
			n = n.children[b]
		}
		n.value = len(text)
		text = append(append(text, replacements[key]...), 0)
	}
	units := []uint32{0}
	var place func(n *node, at int)
	place = func(n *node, at int) {
		block := (len(units) + 255) / 256 * 256
		units = append(units, make([]uint32, block+256-len(units))...)
		units[at] |= uint32(at^block) << 10
		if n.value >= 0 {
			units[at] |= 1 << 8
			units[block] = uint32(n.value) | 1<<31
		}
		for b, child := range n.children {
			units[block^int(b)] = uint32(b)
			place(child, block^int(b))
		}
	}
	place(root, 0)
	out := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		out = binary.LittleEndian.AppendUint32(out, u)
	}
	return append(out, text...)
}

func TestNormalizers(t *testing.T) {
	charsMap := base64.StdEncoding.EncodeToString(makeCharsMap(map[string]string{
		"\r": " ", "\n": " ", "ﬁ": "fi", "e\u0301": "é", "\u200b": "", "Å": "A",
	}))
	for _, test := range []struct{ normalizer, text, want string }{
		{`{"type":"NFC"}`, "e\u0301 ﬁ", "é ﬁ"},
		{`{"type":"NFD"}`, "é", "e\u0301"},
		{`{"type":"NFKC"}`, "ﬁ① \U00010781", "fi1 \U00010781"}, // the last character is too new for the reference
		{`{"type":"NFKD"}`, "ﬁé", "fie\u0301"},
		{`{"type":"NFC"}`, "x\u0301\u08d1\u0323", "x\u0301\u08d1\u0323"}, // the middle mark is too new for the reference
		{`{"type":"NFC"}`, "e" + strings.Repeat("\u0301", 40) + "x", "é" + strings.Repeat("\u0301", 39) + "x"},
		{`{"type":"NFC"}`, strings.Repeat("\u0301\u0323", 20) + " \u1100\u1161\u11a8", strings.Repeat("\u0323", 20) + strings.Repeat("\u0301", 20) + " 각"},
		{`{"type":"NFKD"}`, "ﬁ" + strings.Repeat("\u0344", 20), "fi" + strings.Repeat("\u0308\u0301", 20)},
		{`{"type":"NFC"}`, strings.Repeat("\u0301", 31) + "\u034f", strings.Repeat("\u0301", 31) + "\u034f"},
		{`{"type":"Lowercase"}`, "ÀİΣ\ua7cb", "ài\u0307σ\u0264"},
		{`{"type":"StripAccents"}`, "e\u0301x\u0903", "ex"},
		{`{"type":"Nmt"}`, "a\x01b\tc\u200bd", "ab c d"},
		{`{"type":"Strip","strip_left":true,"strip_right":false}`, "\u3000 a ", "a "},
		{`{"type":"Prepend","prepend":"▁"}`, "a", "▁a"},
		{`{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"_"}`, "a   b c", "a_b c"},
		{`{"type":"Replace","pattern":{"String":"aa"},"content":"b"}`, "aaaa", "bb"},
		{`{"type":"BertNormalizer","lowercase":true}`, "Éa\x00\u200b\t中x", "ea  中 x"},
		{`{"type":"BertNormalizer","lowercase":false,"handle_chinese_chars":false}`, "É中", "É中"},
		{`{"type":"BertNormalizer","lowercase":false,"strip_accents":true}`, "É", "E"},
		{`{"type":"ByteLevel"}`, "é a", "Ã©Ġa"},
		{`{"type":"Precompiled","precompiled_charsmap":"` + charsMap + `"}`, "ﬁ a\r\nb\nc", "fi a b c"},
		{`{"type":"Precompiled","precompiled_charsmap":"` + charsMap + `"}`, "e\u0301 e\u0301\u0302\u0303 \u200bx Å\u0327", "é e\u0301\u0302\u0303 x A"},
		{`{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"Sequence","normalizers":[{"type":"NFC"}]}]}`, "E\u0301", "é"},
	} {
		c, _, err := newComponent(json.RawMessage(test.normalizer), "normalizer")
		must.Do(t, err)
		steps, err := newNormalizers(c)
		if err != nil {
			t.Errorf("%s: %v", test.normalizer, err)
			continue
		}
		got := (&Tokenizer{normalizers: steps}).normalize(new(newWork(0)), test.text)
		if got != test.want {
			t.Errorf("%.80s: %q is %q, want %q", test.normalizer, test.text, got, test.want)
		}
	}
}

func TestSentencePieceNormalizer(t *testing.T) {
	sp := &spSettings{
		CharsMap: makeCharsMap(map[string]string{"\n": " ", "ﬁ": "fi", "f": "F"}), UserDefined: []string{"ﬁﬁ"},
		DummyPrefix: true, RemoveExtra: true, EscapeSpaces: true,
	}
	n := must.Get(sp.normalizer())(t)
	for text, want := range map[string]string{
		"": "", " \n ": "", "ﬁ f": "▁fi▁F", "  a \n b  ": "▁a▁b", "ﬁﬁﬁ": "▁ﬁﬁfi",
	} {
		if got := n(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func FuzzCharsMap(f *testing.F) {
	f.Add(makeCharsMap(map[string]string{"a": "b", "ab": "c"}), "abc")
	f.Fuzz(func(_ *testing.T, data []byte, text string) {
		if m, err := parseCharsMap(data); err == nil {
			m.normalizeClusters(text) // must not panic
			m.longest(text)
		}
	})
}

func TestPreTokenizers(t *testing.T) {
	for _, test := range []struct{ pre, text, want string }{
		{`{"type":"Whitespace"}`, "a, b_c  d!?", "a|,|b_c|d|!?"},
		{`{"type":"WhitespaceSplit"}`, " a,\u3000b ", "a,|b"},
		{`{"type":"BertPreTokenizer"}`, "a,b c!", "a|,|b|c|!"},
		{`{"type":"Punctuation"}`, "a,,b", "a|,|,|b"},
		{`{"type":"Punctuation","behavior":"Contiguous"}`, "a,,b", "a|,,|b"},
		{`{"type":"Digits","individual_digits":true}`, "a12", "a|1|2"},
		{`{"type":"Digits","individual_digits":false}`, "a12b", "a|12|b"},
		{`{"type":"CharDelimiterSplit","delimiter":"-"}`, "a-b--c", "a|b|c"},
		{`{"type":"Metaspace"}`, "a  b", "▁a|▁|▁b"},
		{`{"type":"Metaspace","add_prefix_space":false}`, "a b", "a|▁b"},
		{`{"type":"Metaspace","prepend_scheme":"first","split":false}`, "a b", "▁a▁b"},
		{`{"type":"ByteLevel","add_prefix_space":true}`, "it's a  b", " it|'s| a| | b"},
		{`{"type":"Split","pattern":{"String":"b"},"behavior":"Removed","invert":true}`, "abcb", "b|b"},
		{`{"type":"Split","pattern":{"Regex":"\\p{Lo}+"},"behavior":"Isolated"}`, "a𐗀中b", "a|𐗀中|b"},          // a letter of Unicode 16
		{`{"type":"Split","pattern":{"Regex":"(?<=a)b"},"behavior":"Isolated"}`, "ab éab b", "a|b| éa|b| b"}, // handled by the general engine
	} {
		c, _, err := newComponent(json.RawMessage(test.pre), "pre_tokenizer")
		must.Do(t, err)
		steps, _, err := newPreTokenizers(c)
		if err != nil {
			t.Errorf("%s: %v", test.pre, err)
			continue
		}
		var got []string
		steps[0](piece{test.text, true, new(newWork(0))}, func(p piece) { got = append(got, p.text) })
		if s := strings.Join(got, "|"); s != test.want {
			t.Errorf("%s: %q is %s, want %s", test.pre, test.text, s, test.want)
		}
	}
}

func TestDecoders(t *testing.T) {
	for _, test := range []struct {
		decoder string
		tokens  []string
		want    string
	}{
		{`{"type":"ByteLevel"}`, []string{"Ġa", "Ã©", "Ã", "<中>"}, " aé\uFFFD<中>"},
		{`{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]}`, []string{"a", "<0xC3>", "<0xA9>", "b", "<0xE4>", "<0xB8>", "<0xZZ>"}, "aéb\uFFFD\uFFFD<0xZZ>"},
		{`{"type":"Metaspace"}`, []string{"▁a", "▁b", "c"}, "a bc"},
		{`{"type":"WordPiece","prefix":"##","cleanup":true}`, []string{"do", "##es", "n't", ",", "it"}, "doesn't, it"},
		{`{"type":"BPEDecoder","suffix":"</w>"}`, []string{"a</w>", "b", "c</w>"}, "a bc"},
		{`{"type":"Strip","content":"_","start":2,"stop":1}`, []string{"___a__"}, "_a_"},
		{`{"type":"Replace","pattern":{"String":"▁"},"content":" "}`, []string{"a▁", "▁b"}, "a  b"},
	} {
		c, _, err := newComponent(json.RawMessage(test.decoder), "decoder")
		must.Do(t, err)
		steps, err := newDecoders(c)
		if err != nil {
			t.Errorf("%s: %v", test.decoder, err)
			continue
		}
		tokens := slices.Clone(test.tokens)
		for _, step := range steps {
			tokens = step(tokens)
		}
		if got := strings.Join(tokens, ""); got != test.want {
			t.Errorf("%s: %q, want %q", test.decoder, got, test.want)
		}
	}
}
