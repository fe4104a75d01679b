//go:build engines

package backend_test

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/instrument"
	"tacho/transport"
)

// Tests against real servers, as far as package registries have them: `make
// test-engines`. With -update the streams are kept in testdata/engines, where
// TestCapturedStreams reads them without any server.
var update = flag.Bool("update", false, "keep the streams of the servers in testdata/engines")

// llamaPackage is llama.cpp with its own HTTP server, in a Python wheel.
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
print("listening on", server.listening_address, flush=True)
sys.stdin.read()
`

// installed is a Python environment with a package in it, below .cache.
func installed(t *testing.T, name, pkg string) (python string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".cache", name))
	if err != nil {
		t.Fatal(err)
	}
	python = filepath.Join(dir, "bin", "python")
	mark := filepath.Join(dir, "installed-"+pkg)
	if _, err := os.Stat(mark); err == nil {
		return python
	}
	for _, words := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "-q", pkg}} {
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return python
}

// startLlama runs llama.cpp's server with a model of random weights.
func startLlama(t *testing.T, words ...string) string {
	t.Helper()
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := writeTinyGGUF(model); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(installed(t, "engines", llamaPackage), append([]string{"-c", llamaScript, model}, words...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok && strings.HasPrefix(address, "http") {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return strings.TrimSpace(address)
		}
	}
	t.Fatalf("the server did not start:\n%s", log.String())
	return ""
}

// A recorder passes requests on to a server and keeps what it answers.
type recorder struct {
	mu   sync.Mutex
	last bytes.Buffer
}

func (r *recorder) start(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(resp *http.Response) error {
		r.mu.Lock()
		r.last.Reset()
		r.mu.Unlock()
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, r), resp.Body}
		return nil
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Write(b)
}

func (r *recorder) keep(t *testing.T, name string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if *update {
		path := filepath.Join("testdata", "engines", name+".txt")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, r.last.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEngineLlamaCPP(t *testing.T) {
	server := startLlama(t)
	client, err := transport.New(transport.Options{BaseURL: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if kind, evidence, err := backend.Detect(t.Context(), client, nil); err != nil || kind.Name != "llamacpp" {
		t.Errorf("taken for %q by %q, %v", kind.Name, evidence, err)
	}
	page := []instrument.Target{{URL: server + "/metrics"}}
	epoch := time.Now()
	readPage := func() []instrument.Sample {
		return instrument.Start(t.Context(), http.DefaultClient, page, time.Hour, epoch).Stop()
	}
	before := readPage()
	generated := 0
	for _, name := range []string{"llamacpp", "openai", "openai-chat", "openai-responses", "anthropic"} {
		t.Run(name, func(t *testing.T) { generated += speakLlama(t, server, find(t, name)) })
	}
	t.Run("one after the other", func(t *testing.T) {
		// The server says that it keeps connections, and closes them.
		b := newBackend(t, "llamacpp", server, backend.Options{Model: "tiny"})
		for i := range 30 {
			if rec := send(t.Context(), t, b, textRequest("on the other hand")); rec.Failure != nil {
				t.Fatalf("request %d: %v", i, rec.Failure)
			}
		}
	})
	in := instrument.Summarize(append(before, readPage()...))
	if len(in) != 1 || in[0].GenerationTokens == nil || *in[0].GenerationTokens < float64(generated) || in[0].Running == nil {
		t.Errorf("%+v, and we got %d tokens", in, generated)
	}
}

// speakLlama has a conversation with llama.cpp's server in one of its protocols.
func speakLlama(t *testing.T, server string, kind backend.Kind) (generated int) {
	var rec recorder
	b := newBackend(t, kind.Name, rec.start(t, server), backend.Options{Model: "tiny", KeepText: true, Extra: map[string]any{"seed": 3}})
	models, err := b.(backend.Server).Models(t.Context())
	if err != nil || len(models) != 1 || models[0].ID != "tiny" || kind.Name == "llamacpp" && models[0].MaxLen != 512 {
		t.Errorf("models %+v, %v", models, err)
	}
	prompt, err := b.(backend.Server).CountTokens(t.Context(), "on the other hand")
	if err != nil && kind.Name == "llamacpp" {
		t.Errorf("count: %v", err)
	}
	const tokens = 24
	r := &tacho.Request{ID: "r1", Input: tacho.Input{Text: "on the other hand"}, MaxTokens: tokens, IgnoreEOS: kind.ExactLength}
	got := send(t.Context(), t, b, r)
	rec.keep(t, "llamacpp-"+kind.Name)
	if got.Failure != nil {
		t.Fatal(got.Failure)
	}
	if got.Output != tokens && kind.ExactLength || got.OutputFrom != tacho.FromUsage || len(got.Events) == 0 || got.Finish == "" {
		t.Errorf("%d tokens by %s in %d events, %+v, finish %q", got.Output, got.OutputFrom, len(got.Events), got.Usage, got.Finish)
	}
	if kind.Name == "llamacpp" {
		sum := 0
		for _, e := range got.Events {
			sum += int(e.Tokens)
		}
		if got.Usage.Prompt != prompt || sum != tokens || got.Server == nil || got.Server.Decode <= 0 || got.Server.Decode > got.End {
			t.Errorf("prompt %d and %d, %d tokens in events, times %+v of %v", got.Usage.Prompt, prompt, sum, got.Server, got.End)
		}
	}
	// Its messages endpoint leaves out the event that has the count when the
	// first token is not a whole character.
	if got.Usage.Prompt == 0 && kind.Name != "anthropic" {
		t.Errorf("the prompt was not counted: %+v", got.Usage)
	}
	checkTimes(t, got)
	b = newBackend(t, kind.Name, server, backend.Options{Model: "tiny"})
	long := *r
	long.Input.Text = strings.Repeat("on the other hand ", 500)
	if refused := send(t.Context(), t, b, &long); causeOf(refused) != tacho.Status || !strings.Contains(refused.Failure.Message, "context") {
		t.Errorf("a prompt that does not fit: %v", refused.Failure)
	}
	return got.Output
}

// A model that reads only, on the same server.
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
