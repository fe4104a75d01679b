package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// Files are the files of a model that hold its tokenizer, best first.
	Files = []string{"tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model", "spiece.model", "qwen.tiktoken"}
	// TemplateFiles are the files of a model that may hold its chat template.
	TemplateFiles = []string{"chat_template.jinja", "chat_template.json", configFile}
)

// Open loads a tokenizer from a file, or from the one in a directory that holds
// a model: a tokenizer.json, a tekken.json, a SentencePiece .model or a tiktoken
// rank file, whichever its contents are. The tables made from the file are kept
// in cacheDir, and the next load reads them from there, many times as fast; an
// empty cacheDir keeps none.
func Open(path, cacheDir string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load a tokenizer: %w", err)
	}
	if !info.IsDir() {
		return load(path, cacheDir)
	}
	for _, name := range Files {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); err == nil {
			return load(file, cacheDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load a tokenizer: %w", err)
		}
	}
	return nil, fmt.Errorf("load a tokenizer: %s has none of %s: %w", path, strings.Join(Files, ", "), fs.ErrNotExist)
}

// Of says in the name of the tokenizer which model it belongs to.
func (t *Tokenizer) Of(model string) *Tokenizer {
	t.name = filepath.Base(t.name) + " of " + model
	return t
}
