// Package ranks embeds the rank tables of the encodings of OpenAI's models, so that
// counting their tokens needs no file. NOTICE names the origin and the licence of the
// tables.
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

// A table is named after its encoding. p50k_base starts with all ranks of r50k_base; the
// table P50K holds only the ranks after them.
const (
	R50K   = "r50k_base"
	P50K   = "p50k_base"
	CL100K = "cl100k_base"
	O200K  = "o200k_base"
)

// FirstP50K is the rank of the first token in the table P50K. The ranks of R50K end at
// 50255, and 50256 is a special token.
const FirstP50K = 50257

// Extension is the file name extension of a table.
const Extension = ".ranks"

//go:embed *.ranks
var files embed.FS

// Token is a token of a table.
type Token struct {
	Text []byte
	// Left is the length in bytes of the first of the two tokens this token is merged
	// from. Left is 0 for a token that no merge produces.
	Left int
}

// Tokens returns the tokens of a table in rank order.
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

// Pack returns the file format of a table: the number of tokens, all lengths, all Lefts
// and the bytes of all tokens, compressed.
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

// unpack is the inverse of Pack.
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
	numbers := make([]uint64, 2*count) // lengths, then Lefts
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
