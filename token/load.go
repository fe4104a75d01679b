package token

import (
	"bytes"
	"fmt"
)

// Load reads a tokenizer from a file: a tokenizer.json, a tekken.json, a
// SentencePiece .model or a tiktoken rank file, whichever its contents are.
func Load(path string) (*Tokenizer, error) { return LoadCached(path, "") }

// parse reads a tokenizer file of any known format.
func parse(data []byte, name string) (*definition, error) {
	switch first := bytes.TrimLeft(data, " \t\r\n"); {
	case len(first) == 0:
		return nil, fmt.Errorf("the file is empty")
	case first[0] == '{':
		return parseJSON(data)
	case isRankFile(data):
		return parseRanks(data, name)
	}
	return parseSentencePiece(data)
}
