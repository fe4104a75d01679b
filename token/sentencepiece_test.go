package token

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// protoBytes returns a length-delimited field.
func protoBytes(number int, b []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

func protoVarint(number int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), v)
}

// makeModel returns a small SentencePiece model with byte fallback.
func makeModel(algorithm int) []byte {
	var b []byte
	add := func(text string, score float32, kind uint64) {
		p := protoBytes(1, []byte(text))
		p = append(p, 2<<3|5)
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(score))
		p = append(p, protoVarint(3, kind)...)
		b = append(b, protoBytes(1, p)...)
	}
	add("<unk>", 0, pieceUnknown)
	add("<s>", 0, pieceControl)
	for i := range 256 {
		add(fmt.Sprintf("<0x%02X>", i), 0, pieceByte)
	}
	for i, text := range []string{"▁ab", "ab", "▁a", "▁", "a", "b"} {
		add(text, -float32(i+1), pieceNormal)
	}
	add("<u>", 0, pieceUserDefined)
	trainer := slices.Concat(protoVarint(3, uint64(algorithm)), protoVarint(35, 1), protoVarint(41, 1))
	return slices.Concat(b, protoBytes(2, trainer), protoBytes(3, protoVarint(4, 1)))
}

// TestSentencePieceUserDefined checks that a user-defined piece scores better than all
// others, by its length alone.
func TestSentencePieceUserDefined(t *testing.T) {
	d := must.Get(parse(makeModel(spUnigram), "tokenizer.model"))(t)
	if got, want := d.scores[len(d.scores)-1], float64(float32(0.2)); got != want {
		t.Errorf("the score of <u> is %v, want %v", got, want)
	}
}

func TestSentencePieceModel(t *testing.T) {
	for _, algorithm := range []int{spUnigram, spBPE} {
		d := must.Get(parse(makeModel(algorithm), "tokenizer.model"))(t)
		tok := must.Get(newTokenizer(d, "test"))(t)
		for text, want := range map[string]string{
			"ab":       "▁ab",
			"  ab  a ": "▁ab ▁a",
			"aab":      "▁a ab",
			"<s>a":     "▁ <0x3C> <0x73> <0x3E> a", // control pieces are not found in text
			"a<u>b":    "▁a <u> b",
			"é":        "▁ <0xC3> <0xA9>",
			"":         "",
		} {
			var names []string
			for _, id := range tok.Encode(text, false) {
				name, _ := tok.Token(id)
				names = append(names, name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("algorithm %d: %q is %s, want %s", algorithm, text, got, want)
			}
		}
		if got := tok.Decode(tok.Encode(" ab  é", true), true); got != "ab é" {
			t.Errorf("algorithm %d: decoded %q", algorithm, got)
		}
	}
}
