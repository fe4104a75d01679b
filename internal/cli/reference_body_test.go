//go:build vllm

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recorded"
	"github.com/tacho-bench/tacho/sim"
)

// departures are body fields that intentionally differ from the reference, by
// backend, with the reason.
var departures = map[string]string{
	"openai repetition_penalty":         "servers that are not vLLM may refuse a field they do not know; --backend vllm sends it",
	"openai prompt, random":             "token ids have the length asked for at any server; --prompt-text sends text",
	"openai-chat max_tokens":            "servers that know only the older name of the limit would go on without one",
	"openai-chat logprobs":              "the reference leaves --logprobs out of chat requests",
	"openai-chat top_logprobs":          "the same",
	"openai-embeddings encoding_format": "a list of numbers would cost more to read than to compute",
	"openai-audio stream":               "true is not spelled as in Python",
	"openai-audio stream_include_usage": "the same", "openai-audio stream_continuous_usage_stats": "the same",
	"vllm-rerank priority":  "the reference leaves --extra-body out of requests to rank",
	"vllm-rerank query":     "drawn at random",
	"vllm-rerank documents": "drawn at random; the number is the same",
}

// A seen is a request as received by a server.
type seen struct {
	path   string
	header map[string]string
	body   map[string]any
}

// bodies runs both clients with the same arguments against a recording server.
func (ref *reference) bodies(t *testing.T) {
	prompts := filepath.Join(ref.dir, "prompts.jsonl")
	writeFile(t, prompts, `{"prompt":"w1 \"w2\" <é> & w3"}`+"\n"+`{"prompt":"w4\nw5"}`+"\n")
	pictures := filepath.Join(ref.dir, "pictures.jsonl")
	const url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	writeFile(t, pictures, `{"prompt":"w1 w2","image_files":["`+url+`"]}`+"\n"+`{"prompt":"w3","image_files":["`+url+`"]}`+"\n")

	custom := " --dataset-name custom --dataset-path " + prompts + " --skip-chat-template --disable-shuffle --custom-output-len 7"
	images := " --dataset-name custom_image --dataset-path " + pictures + " --skip-chat-template --disable-shuffle --custom-output-len 7"
	const sampling = " --temperature 0.5 --top-p 0.25 --top-k 3 --min-p 0.125 --frequency-penalty 0.5 --presence-penalty 0.75 --repetition-penalty 1.5"
	const others = ` --ignore-eos --served-model-name served --header x-mine=1 x-other=a=b authorization=own --extra-body {"priority":3,"temperature":0.9,"x":{"y":[1]}}`
	used := map[string]bool{}
	for _, tc := range []struct{ name, backend, path, args string }{
		{"plain", "vllm", "/v1/completions", custom},
		{"plain", "openai", "/v1/completions", custom},
		{"plain", "openai-chat", "/v1/chat/completions", custom},
		{"plain", "openai-responses", "/v1/responses", custom},
		{"plain", "openai-embeddings", "/v1/embeddings", custom},
		{"plain", "openai-embeddings-chat", "/v1/embeddings", custom},
		{"plain", "openai-embeddings-clip", "/v1/embeddings", custom},
		{"plain", "openai-embeddings-vlm2vec", "/v1/embeddings", custom},
		{"plain", "infinity-embeddings", "/embeddings", custom},
		{"plain", "infinity-embeddings-clip", "/v1/embeddings", custom},
		{"plain", "vllm-pooling", "/pooling", custom},
		{"options", "vllm", "/v1/completions", custom + sampling + others + " --logprobs 2"},
		{"options", "openai", "/v1/completions", custom + sampling + others + " --logprobs 2"},
		{"options", "openai-chat", "/v1/chat/completions", custom + sampling + others + " --logprobs 2"},
		{"options", "openai-responses", "/v1/responses", custom + sampling + others},
		{"options", "openai-embeddings", "/v1/embeddings", custom + ` --header x-mine=1 --extra-body {"dimensions":3}`},
		{"options", "vllm-pooling", "/pooling", custom + ` --extra-body {"dimensions":3}`},
		{"options", "infinity-embeddings", "/embeddings", custom + ` --extra-body {"dimensions":3}`},
		{"adapters", "vllm", "/v1/completions", custom + " --lora-modules one two --lora-assignment round-robin"},
		{"adapters", "openai-chat", "/v1/chat/completions", custom + " --lora-modules one --lora-assignment random"},
		{"random", "openai", "/v1/completions", " --random-input-len 5 --random-output-len 3"},
		{"pictures", "openai-chat", "/v1/chat/completions", images},
		{"pictures", "openai-embeddings-chat", "/v1/embeddings", images},
		{"pictures", "openai-embeddings-clip", "/v1/embeddings", images},
		{"pictures", "openai-embeddings-vlm2vec", "/v1/embeddings", images},
		{"pictures", "infinity-embeddings-clip", "/embeddings", images},
		{"rank", "vllm-rerank", "/v1/rerank", ` --dataset-name random-rerank --random-input-len 20 --random-batch-size 1 --extra-body {"priority":3}`},
		{"sound", "openai-audio", "/v1/audio/transcriptions", " --dataset-name custom_audio --dataset-path " + ref.sounds(t) + ` --custom-output-len 5 --disable-shuffle --skip-chat-template --extra-body {"language":"de"}`},
	} {
		t.Run(tc.backend+" "+tc.name, func(t *testing.T) {
			var r recorder
			args := append(strings.Fields(tc.args), "--backend", tc.backend, "--endpoint", tc.path, "--num-prompts", "2", "--max-concurrency", "1",
				"--model", "tiny", "--request-id-prefix", "pre-", "--base-url", r.start(t, tc.path))
			ref.bench(t, args...)
			theirs := r.take()
			ref.tacho(t, args...)
			ours := r.take()
			if len(theirs) != 2 || len(ours) != 2 {
				t.Fatalf("%d requests, there %d", len(ours), len(theirs))
			}
			for i := range theirs {
				compareRequests(t, tc.backend, tc.name, theirs[i], ours[i], used)
			}
		})
	}
	for d := range departures {
		if !used[d] {
			t.Errorf("%q is no departure any more", d)
		}
	}
}

func compareRequests(t *testing.T, backend, name string, theirs, ours seen, used map[string]bool) {
	t.Helper()
	if diff := cmp.Diff(theirs.header, ours.header); diff != "" || theirs.path != ours.path {
		t.Errorf("%s, there %s; headers (-theirs +ours):\n%s", ours.path, theirs.path, diff)
	}
	keys := map[string]bool{}
	for _, body := range []map[string]any{theirs.body, ours.body} {
		for key := range body {
			keys[key] = true
		}
	}
	for key := range keys {
		diff := cmp.Diff(theirs.body[key], ours.body[key])
		if diff == "" {
			continue
		}
		departure := backend + " " + key
		if departures[departure] == "" {
			departure += ", " + name
		}
		if departures[departure] == "" {
			t.Errorf("%s (-theirs +ours):\n%s", key, diff)
		}
		used[departure] = true
		if a, ok := theirs.body[key].([]any); ok && key == "documents" && len(a) != len(ours.body[key].([]any)) {
			t.Errorf("%d documents, there %d", len(ours.body[key].([]any)), len(a))
		}
	}
}

// A recorder is a simulated server that records requests to one path.
type recorder struct {
	mu   sync.Mutex
	list []seen
}

func (r *recorder) take() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

func (r *recorder) start(t *testing.T, path string) string {
	t.Helper()
	s := must.Get(sim.New(sim.Options{TTFT: time.Millisecond, ITL: time.Millisecond, Model: "tiny"}))(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == path && req.Method == http.MethodPost {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
			one, err := newSeen(req, body)
			if err != nil {
				t.Errorf("%v: %.300s", err, body)
			}
			r.mu.Lock()
			r.list = append(r.list, one)
			r.mu.Unlock()
		}
		otherEndpoints(s).ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = s.Close()
	})
	return server.URL
}

// otherEndpoints serves the endpoints of vLLM and Infinity that the simulator does not have: documents as
// embeddings, and a recorded transcription.
func otherEndpoints(s *sim.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/audio/transcriptions":
			recorded.Open("openai-audio").ServeHTTP(w, r)
			return
		case "/pooling", "/embeddings", "/models":
			r.URL.Path = map[bool]string{true: "/v1/models", false: "/v1/embeddings"}[r.Method == http.MethodGet]
		case "/v1/rerank":
			var q struct {
				Query     string
				Documents []string
			}
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			for i := range q.Documents {
				q.Documents[i] = q.Query + " " + q.Documents[i]
			}
			body, _ := json.Marshal(map[string]any{"input": q.Documents})
			r.URL.Path, r.Body = "/v1/embeddings", io.NopCloser(bytes.NewReader(body))
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer.Code)
			_, _ = w.Write(bytes.Replace(answer.Body.Bytes(), []byte(`"data":`), []byte(`"results":`), 1))
			return
		}
		s.ServeHTTP(w, r)
	})
}

// newSeen parses a request with a JSON or form body.
func newSeen(req *http.Request, body []byte) (seen, error) {
	kind, words, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		return seen{}, err
	}
	s := seen{path: req.URL.Path, header: map[string]string{"Content-Type": kind}, body: map[string]any{}}
	for _, name := range []string{"Authorization", "X-Request-Id", "X-Mine", "X-Other"} {
		s.header[name] = strings.Join(req.Header.Values(name), " | ")
	}
	if kind == "application/json" {
		return s, json.Unmarshal(body, &s.body)
	}
	form := multipart.NewReader(bytes.NewReader(body), words["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return s, err
		}
		s.body[part.FormName()] = string(value)
		if part.FileName() != "" { // without its name, which has no meaning, and samples only, because WAV headers vary
			s.body[part.FormName()] = fmt.Sprintf("a file of sound, %d bytes", len(value)/1000*1000)
		}
	}
}
