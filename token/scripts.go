package token

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// newScripted are characters with a script now but without one in Unicode 9, which the
// reference implementation uses. It treats them as belonging to any script.
const newScripted = `
560 588 5ef 61d 7fd-7ff 860-89f 8b5 8be-8d3 9fc-9fe a76 afa-aff b55 c04 c3c c5d c77 c84 cdd cf3-d00 d04
d3b-d3c d81 e86 e89 e8c e8e-e93 e98 ea0 ea8-ea9 eac eba ece 170d 1715-171f 180f 1878 1abf-1ace 1b4c 1b7d-1b7e
1c90-1cbf 1cf7 1cfa 1df6-1dfa 20bf-20c0 23ff 2b97 2bba-2bbc 2bc9 2bd2-2beb 2bf0-2bff 2c2f 2c5f 2e45-2e5d
312e-312f 31bb-31bf 32ff 4db6-4dbf 9fd6-9fff a7af a7b8-a7f6 a82c a8fe-a8ff ab66-ab6b fbc2 fd40-fd4f fdcf
fdfe-fdff 1019c 1032d-1032f 10570-105bc 10780-107ba 10a34-10a35 10a48 10d00-10d39 10e80-10ff6 11070-11075
110c2-110cd 11144-11147 111ce-111cf 1123f-11241 1133b 1145a 1145e-11461 116b8-116b9 1171a 11740-1183b
11900-11abf 11b00-11b09 11d00-11fff 12f90-12ff2 1342f-13455 16a70-16ac9 16e40-16e9a 16f45-16f4f 16f7f-16f87
16fe1-16ff1 187ed-187f7 18af3-1affe 1b002-1b2fb 1cf00-1cfc3 1d1e9-1d1ea 1d2c0-1d2f3 1d372-1d378 1df00-1df2a
1e030-1e7fe 1e94b 1ec71-1ed3d 1f10d-1f10f 1f12f 1f16c-1f16f 1f1ad 1f260-1f265 1f6d3-1f6df 1f6f7-1f6fc
1f774-1f77f 1f7d5-1f7f0 1f8b0-1f90f 1f91f 1f928-1f92f 1f931-1f932 1f93f 1f94c-1f94f 1f95f-1f97f 1f992-1f9bf
1f9c1-1fbf9 2a6d7-2a6df 2b735-2b739 2ceb0-2ebe0 30000-323af`

// scriptTable maps each character to the number of its script; 0 matches any script.
type scriptTable [unicode.MaxRune + 1]uint8

// scripts assigns scripts like SentencePiece: kana count as Han, and a space belongs to
// the surrounding script.
var scripts = sync.OnceValue(func() *scriptTable {
	t := &scriptTable{}
	number := map[string]uint8{}
	for name, table := range unicode.Scripts {
		if name == "Hiragana" || name == "Katakana" {
			name = "Han"
		}
		if number[name] == 0 {
			number[name] = uint8(len(number) + 1)
		}
		t.set(table, number[name])
	}
	newer := parseRanges(newScripted)
	for r := range t {
		if newer.has(rune(r)) {
			t[r] = 0
		}
	}
	t[0x061c], t[0x0589] = number["Common"], number["Common"]
	t[0x0953], t[0x0954] = number["Devanagari"], number["Devanagari"]
	t[0x30fc] = number["Han"] // the mark of a long vowel
	t[' '] = 0
	return t
})

func (t *scriptTable) set(table *unicode.RangeTable, number uint8) {
	for _, r := range table.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			t[c] = number
		}
	}
	for _, r := range table.R32 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			t[c] = number
		}
	}
}

// splitScripts splits where the script changes. A character of any script joins the piece
// before it. At the beginning of the text such characters are dropped, as in the
// reference.
func splitScripts(p piece, emit func(piece)) {
	table := scripts()
	start, current := 0, uint8(0)
	for i, r := range p.text {
		script := table[r]
		if script == 0 || script == current {
			continue
		}
		if current != 0 {
			emit(p.part(start, i))
		}
		start, current = i, script
	}
	if current != 0 {
		emit(p.part(start, len(p.text)))
	}
}

// newFixedLength splits into pieces of a fixed number of characters.
func newFixedLength(c component) (preTokenizer, error) {
	o := struct {
		Length int `json:"length"`
	}{5}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	if o.Length < 1 {
		return nil, c.errorf("length: %d is not a number of characters", o.Length)
	}
	return func(p piece, emit func(piece)) {
		for start := 0; start < len(p.text); {
			end := start
			for n := 0; n < o.Length && end < len(p.text); n++ {
				_, size := utf8.DecodeRuneInString(p.text[end:])
				end += size
			}
			emit(p.part(start, end))
			start = end
		}
	}, nil
}
