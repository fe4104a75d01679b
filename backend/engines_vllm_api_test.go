//go:build engines && vllm

package backend_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
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
		must.Do(t, json.NewEncoder(&b).Encode(got))
	}
	if *update {
		must.Do(t, os.WriteFile(filepath.Join("testdata", "vllm-api.jsonl"), b.Bytes(), 0o644))
	}
}
