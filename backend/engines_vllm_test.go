//go:build engines && vllm

package backend_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/must"
)

// startVLLM runs vLLM on CPUs, which takes one or two minutes to start.
func startVLLM(t *testing.T, words ...string) string {
	t.Helper()
	python := os.Getenv("VLLM")
	if python == "" {
		t.Fatal("the variable VLLM does not say where its Python is: run make test-vllm")
	}
	model := t.TempDir()
	if out, err := exec.Command(python, "../testdata/vllm-model.py", model).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := freePort(t)
	words = append([]string{
		"-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "tiny", "--load-format", "dummy",
		"--dtype", "float32", "--max-model-len", "512", "--enforce-eager", "--host", "127.0.0.1", "--port", port,
	}, words...)
	cmd := exec.Command(python, words...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
		"OMP_NUM_THREADS=1", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "VLLM_SERVER_DEV_MODE=1")
	startServer(t, cmd, "Application startup complete") // listens a moment later
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return "http://127.0.0.1:" + port
		}
	}
	t.Fatal("the server started, and does not listen")
	return ""
}

func TestEngineVLLM(t *testing.T) {
	server := startVLLM(t, "--enable-prompt-tokens-details", "--enable-per-request-metrics")
	if kind, evidence := detected(t, server); kind != "vllm" {
		t.Errorf("taken for %q by %q", kind, evidence)
	}
	page := []instrument.Target{{URL: server + "/metrics"}}
	epoch := time.Now()
	readPage := func() []instrument.Sample {
		return instrument.Start(t.Context(), http.DefaultClient, page, time.Hour, epoch, nil).Stop()
	}
	before := readPage()
	generated := 0
	for _, name := range []string{"vllm", "openai", "openai-chat", "openai-responses", "anthropic"} {
		kind := find(t, name)
		t.Run(name, func(t *testing.T) { generated += checkVLLM(t, server, kind) })
		t.Run(name+" shortly", func(t *testing.T) { checkShortAnswers(t, server, kind) })
		t.Run(name+" by many", func(t *testing.T) {
			if client, again := sendConcurrently(t, server, kind); !client.Keeps() || again > 0 {
				t.Errorf("it keeps connections: %v; %d requests started over", client.Keeps(), again)
			}
		})
	}
	t.Run("small vocabulary", func(t *testing.T) {
		if output := measure(t, server, "--backend", "vllm", "--tokenizer", vllmModelDir(t, server)); strings.Contains(output, "as text") {
			t.Errorf("the tokenizer's size is not believed:\n%s", output)
		}
		if output := measure(t, server, "--backend", "vllm", "--skip-tokenizer-init"); !strings.Contains(output, "as text") {
			t.Errorf("ids beyond the vocabulary were refused, but the output does not mention it:\n%s", output)
		}
	})
	in := instrument.Summarize(append(before, readPage()...), time.Since(epoch).Seconds())
	if len(in) != 1 || in[0].GenerationTokens == nil || *in[0].GenerationTokens < float64(generated) || in[0].Running == nil || in[0].TTFTMillis == nil {
		t.Errorf("%+v, and we got %d tokens", in, generated)
	}
}

// vllmModelDir returns the model directory reported by the server.
func vllmModelDir(t *testing.T, server string) string {
	t.Helper()
	resp, err := http.Get(server + "/v1/models")
	must.Do(t, err)
	defer func() { _ = resp.Body.Close() }()
	var list struct{ Data []struct{ Root string } }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Data) != 1 {
		t.Fatalf("%v, %+v", err, list)
	}
	return list.Data[0].Root
}

// checkVLLM checks one protocol of vLLM.
func checkVLLM(t *testing.T, server string, kind backend.Kind) (generated int) {
	b := newBackend(t, kind.Name, server, backend.Options{Model: "tiny"})
	s := b.(backend.Server)
	models, err := s.Models(t.Context())
	if err != nil || len(models) != 1 || models[0].ID != "tiny" || models[0].MaxLen != 512 {
		t.Errorf("models %+v, %v", models, err)
	}
	prompt, err := s.CountTokens(t.Context(), &tacho.Input{Text: "on the other hand"})
	if err != nil {
		t.Errorf("count: %v", err)
	}
	if err := s.FlushCache(t.Context()); err != nil && kind.Name == "vllm" {
		t.Errorf("flush: %v", err)
	}
	got := recordStream(t, "vllm", server, kind)
	if got.Usage.Prompt != prompt || got.Output != askTokens && kind.ExactLength {
		t.Errorf("prompt of %d tokens, counted before as %d; %d of %d tokens out", got.Usage.Prompt, prompt, got.Output, askTokens)
	}
	if kind.Name == "vllm" {
		checkExtras(t, server, got)
	}
	long := &tacho.Request{ID: "r1", Input: tacho.Input{Text: strings.Repeat("on the other hand ", 500)}, MaxTokens: askTokens}
	if refused := send(t.Context(), t, b, long); causeOf(refused) != tacho.Status || !strings.Contains(refused.Failure.Message, "512") {
		t.Errorf("a prompt that does not fit: %v", refused.Failure)
	}
	return got.Output
}

// checkExtras checks features specific to vLLM.
func checkExtras(t *testing.T, server string, plain *tacho.Record) {
	t.Helper()
	if plain.Server == nil || plain.Server.TTFT <= 0 || plain.Server.TTFT > plain.End {
		t.Errorf("the server's times: %+v of %v", plain.Server, plain.End)
	}
	for name, extras := range map[string]backend.Extras{
		"continuous usage": {ContinuousUsage: true, CacheSalt: "a"}, "token ids": {ReturnTokenIDs: true, CacheSalt: "b"},
	} {
		b := newBackend(t, "vllm", server, backend.Options{Model: "tiny", Extras: extras})
		got := send(t.Context(), t, b, &tacho.Request{Input: tacho.Input{IDs: []int32{65, 66, 67}}, MaxTokens: askTokens, IgnoreEOS: true})
		sum := 0
		for _, e := range got.Events {
			sum += int(e.Tokens)
		}
		if got.Failure != nil || sum != askTokens || got.Usage == nil || got.Usage.Prompt != 3 {
			t.Errorf("%s: %v, %d tokens in events, %+v", name, got.Failure, sum, got.Usage)
		}
	}
}

// vLLM answers pooling requests.
func TestEngineVLLMPooling(t *testing.T) {
	server := startVLLM(t, "--runner", "pooling", "--convert", "embed")
	for _, name := range []string{"openai-embeddings", "vllm-pooling"} {
		var rec recorder
		b := newBackend(t, name, rec.start(t, server), backend.Options{Model: "tiny"})
		for _, in := range []tacho.Input{{Text: "on the other hand"}, {IDs: []int32{65, 66, 67, 68, 69}}} {
			got := send(t.Context(), t, b, &tacho.Request{ID: "r1", Input: in})
			want := max(len(in.Text), len(in.IDs))
			if got.Failure != nil || got.Usage == nil || got.Usage.Prompt != want || got.Output != 0 {
				t.Errorf("%s: %v, %+v, %d tokens out", name, got.Failure, got.Usage, got.Output)
			}
		}
		path := filepath.Join("testdata", "documents", "vllm-"+name+".json")
		if *update {
			must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must.Do(t, os.WriteFile(path, rec.last.Bytes(), 0o644))
		}
	}
}
