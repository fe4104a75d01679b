//go:build engines

package backend_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/must"
)

// llamaPackage is llama.cpp with its own HTTP server as a Python wheel.
const llamaPackage = "xllamacpp==2026.10.11549"

const llamaScript = `
import sys, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.model_alias, p.port = sys.argv[1], ["tiny"], 0
p.n_ctx, p.n_parallel, p.warmup, p.fit_params = 1024, 2, False, False
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
p.endpoint_metrics = p.endpoint_props = True
if "embedding" in sys.argv:
    p.embedding, p.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = xllamacpp.Server(p)
print("tacho: listening on", server.listening_address, flush=True)
sys.stdin.read()
`

// startLlama runs llama.cpp's server with random weights.
func startLlama(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.Command(installed(t, "engines", llamaPackage), append([]string{"-c", llamaScript, tinyModel(t)}, words...)...)
	stdin := must.Get(cmd.StdinPipe())(t)
	address := startServer(t, cmd, "tacho: listening on ")
	t.Cleanup(func() { _ = stdin.Close() }) // stops the server
	return address
}

func TestEngineLlamaCPP(t *testing.T) {
	server := startLlama(t)
	if kind, evidence := detected(t, server); kind != "llamacpp" {
		t.Errorf("taken for %q by %q", kind, evidence)
	}
	page := []instrument.Target{{URL: server + "/metrics"}}
	epoch := time.Now()
	readPage := func() []instrument.Sample {
		return instrument.Start(t.Context(), http.DefaultClient, page, time.Hour, epoch, nil).Stop()
	}
	before := readPage()
	generated := 0
	for _, name := range []string{"llamacpp", "openai", "openai-chat", "openai-responses", "anthropic"} {
		t.Run(name, func(t *testing.T) { generated += checkLlama(t, server, find(t, name)) })
		// The server announces keep-alive, but closes connections after a stream.
		t.Run(name+" by many", func(t *testing.T) {
			client, again := sendConcurrently(t, server, find(t, name))
			t.Logf("%d requests started over", again)
			if client.Keeps() {
				t.Error("the server is taken for one that keeps connections")
			}
		})
	}
	// The server reports its vocabulary size, so random ids are drawn from the vocabulary.
	if output := measure(t, server, "--backend", "llamacpp"); strings.Contains(output, "as text") {
		t.Errorf("the prompts were sent as text:\n%s", output)
	}
	in := instrument.Summarize(append(before, readPage()...), time.Since(epoch).Seconds())
	if len(in) != 1 || in[0].GenerationTokens == nil || *in[0].GenerationTokens < float64(generated) || in[0].Running == nil {
		t.Errorf("%+v, and we got %d tokens", in, generated)
	}
}

// checkLlama checks one protocol of llama.cpp's server.
func checkLlama(t *testing.T, server string, kind backend.Kind) (generated int) {
	b := newBackend(t, kind.Name, server, backend.Options{Model: "tiny"})
	models, err := b.(backend.Server).Models(t.Context())
	if err != nil || len(models) != 1 || models[0].ID != "tiny" || kind.Name == "llamacpp" && models[0].MaxLen != 512 {
		t.Errorf("models %+v, %v", models, err)
	}
	if err == nil && kind.Takes.IDs && models[0].Vocab < 8 {
		t.Errorf("a vocabulary of %d tokens", models[0].Vocab)
	}
	prompt, err := b.(backend.Server).CountTokens(t.Context(), &tacho.Input{Text: "on the other hand"})
	if err != nil && kind.Name == "llamacpp" {
		t.Errorf("count: %v", err)
	}
	got := recordStream(t, "llamacpp", server, kind)
	if got.Output != askTokens && kind.ExactLength {
		t.Errorf("%d tokens, and %d were asked for", got.Output, askTokens)
	}
	if kind.Name == "llamacpp" {
		sum := 0
		for _, e := range got.Events {
			sum += int(e.Tokens)
		}
		if got.Usage.Prompt != prompt || sum != askTokens || got.Server == nil || got.Server.Decode <= 0 || got.Server.Decode > got.End {
			t.Errorf("prompt %d and %d, %d tokens in events, times %+v of %v", got.Usage.Prompt, prompt, sum, got.Server, got.End)
		}
	}
	// The messages endpoint omits the event with the count if the first token is not a complete character.
	if got.Usage.Prompt == 0 && kind.Name != "anthropic" {
		t.Errorf("the prompt was not counted: %+v", got.Usage)
	}
	long := &tacho.Request{ID: "r1", Input: tacho.Input{Text: strings.Repeat("on the other hand ", 500)}, MaxTokens: askTokens}
	if refused := send(t.Context(), t, b, long); causeOf(refused) != tacho.Status || !strings.Contains(refused.Failure.Message, "context") {
		t.Errorf("a prompt that does not fit: %v", refused.Failure)
	}
	return got.Output
}

// llamaPythonPackage is another server based on llama.cpp. It is built from source at installation, which takes
// about ten minutes.
const llamaPythonPackage = "llama-cpp-python[server]==0.3.36"

// llama-cpp-python rejects token ids in a prompt and requires a UUID as request id.
func TestEngineLlamaCPPPython(t *testing.T) {
	python := installed(t, "llama-cpp-python", llamaPythonPackage)
	cmd := exec.Command(python, "-m", "llama_cpp.server", "--model", tinyModel(t), "--model_alias", "tiny", "--n_ctx", "512", "--host", "127.0.0.1", "--port", freePort(t))
	server := startServer(t, cmd, "Uvicorn running on ")
	if output := measure(t, server, "--backend", "openai", "--request-id-format", "uuid"); !strings.Contains(output, "refused a prompt of token ids") {
		t.Errorf("the output does not mention the switch to text:\n%s", output)
	}
}

// llama.cpp's server answers embedding requests.
func TestEngineLlamaCPPEmbeddings(t *testing.T) {
	server := startLlama(t, "embedding")
	var rec recorder
	b := newBackend(t, "openai-embeddings", rec.start(t, server), backend.Options{Model: "tiny"})
	for _, in := range []tacho.Input{{Text: "on the other hand"}, {IDs: []int32{65, 66, 67, 68, 69}}} {
		got := send(t.Context(), t, b, &tacho.Request{ID: "r1", Input: in})
		if got.Failure != nil || got.Usage == nil || got.Usage.Prompt == 0 || got.Output != 0 || in.IDs != nil && got.Usage.Prompt != len(in.IDs) {
			t.Errorf("%v, %+v, %d tokens out", got.Failure, got.Usage, got.Output)
		}
	}
}
