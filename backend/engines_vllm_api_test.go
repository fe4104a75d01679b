//go:build engines && vllm

package backend_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vLLM's reactions match the ones recorded for the simulator; -update records them again.
func TestEngineVLLMReactions(t *testing.T) {
	server := startVLLM(t)
	var b bytes.Buffer
	for _, want := range vllmReactions(t) {
		got := want.react(t, server)
		if diff := cmp.Diff(want, got); diff != "" && !*update {
			t.Errorf("%s %s (-kept +vLLM):\n%s", want.Name, want.Path, diff)
		}
		if err := json.NewEncoder(&b).Encode(got); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "vllm-api.jsonl"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
