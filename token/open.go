package token

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

var (
	// Files are the names of tokenizer files in a model directory, best first.
	Files = []string{"tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model", "spiece.model", "qwen.tiktoken"}
	// TemplateFiles are the names of files in a model directory that may contain its chat
	// template.
	TemplateFiles = []string{"chat_template.jinja", "chat_template.json", configFile}
)

// Open loads a tokenizer from a file or from a model directory. It detects the format by
// the contents: tokenizer.json, tekken.json, a SentencePiece .model or a tiktoken rank
// file. Open keeps compiled tables in cacheDir, so that the next load is many times
// faster. If cacheDir is empty, there is no cache.
func Open(path, cacheDir string) (*Tokenizer, error) {
	info, err := atomicfile.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load a tokenizer: %w", err)
	}
	if !info.IsDir() {
		return load(path, cacheDir)
	}
	for _, name := range Files {
		file := filepath.Join(path, name)
		if _, err := atomicfile.Stat(file); err == nil {
			return load(file, cacheDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load a tokenizer: %w", err)
		}
	}
	return nil, fmt.Errorf("load a tokenizer: %s has none of %s: %w", path, strings.Join(Files, ", "), fs.ErrNotExist)
}

// Of adds the model to the name of the tokenizer.
func (t *Tokenizer) Of(model string) *Tokenizer {
	t.name = filepath.Base(t.name) + " of " + model
	return t
}
