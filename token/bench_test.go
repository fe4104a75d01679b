package token

import "testing"

// BenchmarkCount counts a prompt of common length with a small vocabulary.
func BenchmarkCount(b *testing.B) {
	d, err := parse(benchJSON(b), "tokenizer.json")
	if err != nil {
		b.Fatal(err)
	}
	tok, err := newTokenizer(d, "bench")
	if err != nil {
		b.Fatal(err)
	}
	text := englishText(8 << 10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tok.Count(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}

func benchJSON(b *testing.B) []byte {
	b.Helper()
	return makeJSON(&testing.T{}, byteVocab("t h", "th e", "Ġ the", "i n", "Ġ t", "a n", "an d"), byteLevelFields)
}
