package token

import (
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// BenchmarkCount counts a prompt of common length with a small vocabulary.
func BenchmarkCount(b *testing.B) {
	d := must.Get(parse(benchJSON(b), "tokenizer.json"))(b)
	tok := must.Get(newTokenizer(d, "bench"))(b)
	text := englishText(8 << 10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(tok.Count(b.Context(), text))(b)
	}
}

func benchJSON(b *testing.B) []byte {
	b.Helper()
	return makeJSON(&testing.T{}, byteVocab("t h", "th e", "Ġ the", "i n", "Ġ t", "a n", "an d"), byteLevelFields)
}
