package token

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// cutBy returns the pieces of a text, separated by bars.
func cutBy(t *testing.T, text string, preTokenizer object) string {
	t.Helper()
	raw := must.Get(json.Marshal(preTokenizer))(t)
	c, _, err := newComponent(raw, "pre_tokenizer")
	must.Do(t, err)
	step := must.Get(newPreTokenizer(c))(t)
	var pieces []string
	step(piece{text, true, new(newWork(0))}, func(p piece) { pieces = append(pieces, p.text) })
	return strings.Join(pieces, "|")
}

func TestUnicodeScripts(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"   ":                      "",
		" Yes":                     "Yes",
		"Apples are りんご 林檎":        "Apples are |りんご 林檎",
		"カー。a1":                    "カー|。|a|1",
		"a\u05efb":                 "a\u05efb", // assigned too late for a script in the old table
		"ա\u0589":                  "ա|\u0589", // Common in the old table, Armenian now
		"\u0915\u0953\u0301":       "\u0915\u0953|\u0301",
		"жa \U0001fae0 \U0001f600": "ж|a \U0001fae0 |\U0001f600",
	} {
		if got := cutBy(t, text, object{"type": "UnicodeScripts"}); got != want {
			t.Errorf("%q is cut into %q, want %q", text, got, want)
		}
	}
}

func TestFixedLength(t *testing.T) {
	for _, test := range []struct {
		text, want string
		settings   object
	}{
		{"", "", object{"type": "FixedLength"}},
		{"hello world", "hello| worl|d", object{"type": "FixedLength"}},
		{"héllo", "hé|ll|o", object{"type": "FixedLength", "length": 2}},
	} {
		if got := cutBy(t, test.text, test.settings); got != test.want {
			t.Errorf("%q is cut into %q, want %q", test.text, got, test.want)
		}
	}
}

func TestCTC(t *testing.T) {
	for settings, want := range map[string]string{
		`{"type":"CTC"}`:                 "hello woman's",
		`{"type":"CTC","cleanup":false}`: "hello|woman 's",
		`{"type":"CTC","pad_token":"-","word_delimiter_token":"o","cleanup":true}`: "<pad>he<pad>l<pad>l |w man's",
	} {
		c, _, err := newComponent([]byte(settings), "decoder")
		must.Do(t, err)
		steps := must.Get(newDecoders(c))(t)
		tokens := strings.Fields("<pad> <pad> h e e <pad> l l <pad> l o o | | w o m a n")
		if got := strings.Join(steps[0](append(tokens, " 's")), ""); got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}

// TestByteLevelFirst checks a ByteLevel step that is not the last: later steps see the
// byte-level characters.
func TestByteLevelFirst(t *testing.T) {
	tok := makeTokenizer(t, byteVocab("a Ġ", "t h", "Ġ t"), object{
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []any{
			object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
			object{"type": "Split", "pattern": object{"String": "Ġ"}, "behavior": "MergedWithPrevious"},
		}},
		"decoder": object{"type": "ByteLevel"},
	})
	got := tok.Encode("a thé", false)
	if text := tok.Decode(got, false); len(got) != 4 || got[0] != 256 || got[1] != 257 || text != "a thé" {
		t.Errorf("%v, decoded %q", got, text)
	}
}
