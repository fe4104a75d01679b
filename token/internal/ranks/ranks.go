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

// Tokens is the tokens of a table in the order of their ranks.
func Tokens(table string) ([][]byte, error) {
	packed, err := files.ReadFile(table + Extension)
	if err != nil {
		return nil, err
	}
	tokens, err := Unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("rank table %s: %w", table, err)
	}
	return tokens, nil
}

// Pack is a table as it is kept: how many tokens there are, the length of each
// and then their bytes, compressed.
func Pack(tokens [][]byte) ([]byte, error) {
	raw := binary.AppendUvarint(nil, uint64(len(tokens)))
	for _, t := range tokens {
		raw = binary.AppendUvarint(raw, uint64(len(t)))
	}
	for _, t := range tokens {
		raw = append(raw, t...)
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

// Unpack is the tokens that were packed.
func Unpack(packed []byte) ([][]byte, error) {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, err
	}
	count, n := binary.Uvarint(raw)
	if n <= 0 || count > uint64(len(raw)) {
		return nil, errCutOff
	}
	raw = raw[n:]
	lengths := make([]uint64, count)
	for i := range lengths {
		if lengths[i], n = binary.Uvarint(raw); n <= 0 {
			return nil, errCutOff
		}
		raw = raw[n:]
	}
	tokens := make([][]byte, count)
	for i, length := range lengths {
		if length > uint64(len(raw)) {
			return nil, errCutOff
		}
		tokens[i], raw = raw[:length:length], raw[length:]
	}
	if len(raw) > 0 {
		return nil, fmt.Errorf("%d bytes after the last token", len(raw))
	}
	return tokens, nil
}
