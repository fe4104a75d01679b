// Package ranks carries the rank tables of the encodings that OpenAI's models
// have, so that their tokens can be counted without any file. NOTICE says where
// the tables come from and under which licence.
package ranks

import (
	"bytes"
	"compress/flate"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The name of a table is that of the encoding whose ranks it has. Those of
// p50k_base are those of r50k_base first, and only what it adds is kept.
const (
	R50K   = "r50k_base"
	P50K   = "p50k_base"
	CL100K = "cl100k_base"
	O200K  = "o200k_base"
)

// FirstP50K is the rank of the first token in the table P50K: 50256, the rank
// after the last of R50K, is that of a special token.
const FirstP50K = 50257

// Extension is how the name of a file with a table ends.
const Extension = ".ranks"

//go:embed *.ranks
var files embed.FS

// A Token is a token of a table.
type Token struct {
	Text []byte
	// Left is how many bytes the first of the two tokens has that this one is
	// merged from; 0 is for a token that no merge leads to.
	Left int
}

// Tokens is the tokens of a table in the order of their ranks.
func Tokens(table string) ([]Token, error) {
	packed, err := files.ReadFile(table + Extension)
	if err != nil {
		return nil, err
	}
	tokens, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("rank table %s: %w", table, err)
	}
	return tokens, nil
}

// Pack is a table as it is kept: how many tokens there are, the length of each,
// where each is merged, and then their bytes, compressed.
func Pack(tokens []Token) ([]byte, error) {
	raw := binary.AppendUvarint(nil, uint64(len(tokens)))
	for _, t := range tokens {
		raw = binary.AppendUvarint(raw, uint64(len(t.Text)))
	}
	for _, t := range tokens {
		raw = binary.AppendUvarint(raw, uint64(t.Left))
	}
	for _, t := range tokens {
		raw = append(raw, t.Text...)
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

var errCutOff = errors.New("cut off")

// unpack is the tokens that were packed.
func unpack(packed []byte) ([]Token, error) {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, err
	}
	count, n := binary.Uvarint(raw)
	if n <= 0 || count > uint64(len(raw)) {
		return nil, errCutOff
	}
	raw = raw[n:]
	numbers := make([]uint64, 2*count) // lengths and lefts
	for i := range numbers {
		if numbers[i], n = binary.Uvarint(raw); n <= 0 {
			return nil, errCutOff
		}
		raw = raw[n:]
	}
	tokens := make([]Token, count)
	for i := range tokens {
		length, left := numbers[i], numbers[int(count)+i]
		if length > uint64(len(raw)) || left > 0 && left >= length {
			return nil, errCutOff
		}
		tokens[i], raw = Token{raw[:length:length], int(left)}, raw[length:]
	}
	if len(raw) > 0 {
		return nil, fmt.Errorf("%d bytes after the last token", len(raw))
	}
	return tokens, nil
}
