//go:build engines

package backend_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
)

// startOllama runs the server built by `make`, with a model of random weights named tiny.
func startOllama(t *testing.T) string {
	t.Helper()
	program := os.Getenv("OLLAMA")
	if program == "" {
		t.Fatal("the variable OLLAMA does not say where the program is: run make test-engines")
	}
	dir := t.TempDir()
	ollama := func(address string, words ...string) *exec.Cmd {
		cmd := exec.Command(program, words...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "models"), "OLLAMA_NUM_PARALLEL=2", "OLLAMA_HOST="+address)
		return cmd
	}
	address := startServer(t, ollama("127.0.0.1:0", "serve"), "Listening on ")
	modelfile := filepath.Join(dir, "Modelfile")
	words := "FROM " + tinyModel(t) + "\nPARAMETER num_thread 1\nPARAMETER num_ctx 512\n"
	must.Do(t, os.WriteFile(modelfile, []byte(words), 0o644))
	if out, err := ollama(address, "create", "tiny", "-f", modelfile).CombinedOutput(); err != nil {
		t.Fatalf("create the model: %v\n%s", err, out)
	}
	return "http://" + address
}

func TestEngineOllama(t *testing.T) {
	server := startOllama(t)
	if kind, evidence := detected(t, server); kind != "ollama" {
		t.Errorf("taken for %q by %q", kind, evidence)
	}
	for _, name := range []string{"ollama", "ollama-chat", "openai", "openai-chat", "openai-responses", "anthropic"} {
		kind := find(t, name)
		t.Run(name, func(t *testing.T) { checkOllama(t, server, kind) })
		t.Run(name+" by many", func(t *testing.T) {
			if client, again := sendConcurrently(t, server, kind); !client.Keeps() || again > 0 {
				t.Errorf("it keeps connections: %v; %d requests started over", client.Keeps(), again)
			}
		})
	}
	t.Run("openai-embeddings", func(t *testing.T) {
		b := newBackend(t, "openai-embeddings", server, backend.Options{Model: "tiny"})
		got := send(t.Context(), t, b, &tacho.Request{ID: "r1", Input: tacho.Input{Text: "on the other hand"}})
		if got.Failure != nil || got.Usage == nil || got.Usage.Prompt == 0 || got.Output != 0 {
			t.Errorf("%v, %+v, %d tokens out", got.Failure, got.Usage, got.Output)
		}
	})
	t.Run("no such model", func(t *testing.T) {
		b := newBackend(t, "ollama", server, backend.Options{Model: "huge"})
		if got := send(t.Context(), t, b, textRequest("hi")); causeOf(got) != tacho.Status || !strings.Contains(got.Failure.Message, "not found") {
			t.Errorf("%v", got.Failure)
		}
	})
}

// checkOllama checks one protocol of the server.
func checkOllama(t *testing.T, server string, kind backend.Kind) {
	b := newBackend(t, kind.Name, server, backend.Options{Model: "tiny"})
	own := strings.HasPrefix(kind.Name, "ollama")
	want := backend.Model{ID: "tiny:latest"}
	if own {
		want = backend.Model{ID: "tiny", MaxLen: 512} // the name used by the test, and the context length the model was created with
	}
	models, err := b.(backend.Server).Models(t.Context())
	if diff := cmp.Diff([]backend.Model{want}, models); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got := recordStream(t, "ollama", server, kind)
	if want := len("on the other hand") - 5; got.Usage.Prompt != want { // the text contains five pairs of the vocabulary
		t.Errorf("prompt of %d tokens, want %d", got.Usage.Prompt, want)
	}
	if own && (got.Server == nil || got.Server.Prefill <= 0 || got.Server.Decode <= 0 || got.Server.Total > got.End) {
		t.Errorf("times %+v of %v", got.Server, got.End)
	}
}
