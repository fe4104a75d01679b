package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
)

// An agent reads the files of --allow-read and the tokenizers of cached models, but no cached datasets and no keys.
func TestAgentIsConfined(t *testing.T) {
	top := t.TempDir()
	files := map[string]bool{
		"data/prompts.jsonl":                         true,
		"hf/hub/models--a--b/blobs/1":                true,
		"hf/models--a--b/snapshots/1/tokenizer.json": true,
		"hf/hub/datasets--a--b/blobs/1":              false,
		"hf/token":                                   false,
		"keys/nats.creds":                            false,
	}
	for name := range files {
		path := filepath.Join(top, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	models := run.Tokenizers{Home: filepath.Join(top, "hf")}
	for _, c := range []struct {
		read []string
		can  func(name string) bool
	}{
		{[]string{filepath.Join(top, "data")}, func(name string) bool { return files[name] }},
		{nil, func(name string) bool { return files[name] && name != "data/prompts.jsonl" }},
		{[]string{anyFile}, func(string) bool { return true }},
	} {
		undo := (&agentFlags{read: c.read}).confine(&models)
		for name := range files {
			_, err := atomicfile.Read(filepath.Join(top, name))
			if (err == nil) != c.can(name) {
				t.Errorf("--allow-read %q: %s: %v", c.read, name, err)
			}
		}
		undo()
	}
}
