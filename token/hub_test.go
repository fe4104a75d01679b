package token

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFromCache(t *testing.T) {
	home := t.TempDir()
	repo := filepath.Join(home, "hub", "models--org--model")
	file := makeJSON(t, byteVocab("t h"), byteLevelFields)
	newer := makeJSON(t, byteVocab("h t"), byteLevelFields)
	writeFile(t, filepath.Join(repo, "refs", "main"), []byte("c0ffee\n"))
	writeFile(t, filepath.Join(repo, "refs", "pr", "1"), []byte("beef"))
	// Snapshots hold links to blobs.
	writeFile(t, filepath.Join(repo, "blobs", "1"), file)
	if err := os.MkdirAll(filepath.Join(repo, "snapshots", "c0ffee"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "..", "blobs", "1"), filepath.Join(repo, "snapshots", "c0ffee", "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(repo, "snapshots", "beef", "tokenizer.json"), newer)
	for revision, want := range map[string]int{"": 1, "main": 1, "c0ffee": 1, "pr/1": 2, "beef": 2} {
		for _, at := range []string{home, filepath.Join(home, "hub")} {
			tok, err := FromCache("org/model", revision, at, "")
			if err != nil {
				t.Errorf("revision %q: %v", revision, err)
				continue
			}
			if got := len(tok.Encode("th", false)); got != want {
				t.Errorf("revision %q: %d tokens, want %d", revision, got, want)
			}
			if got := tok.Name(); got != "tokenizer.json of org/model" {
				t.Errorf("name %q", got)
			}
		}
	}
	for _, name := range []string{"org/other", "../model", "org/../../etc", "org/model/x", "", "/abs"} {
		if _, err := FromCache(name, "", home, ""); err == nil {
			t.Errorf("model %q: no error", name)
		}
	}
	for _, revision := range []string{"dead", "../main", "a b"} {
		if _, err := FromCache("org/model", revision, home, ""); err == nil {
			t.Errorf("revision %q: no error", revision)
		}
	}
}

// newHub serves the files of one model, gated by a token.
func newHub(t *testing.T, files map[string][]byte) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/org/model/resolve/main/")
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case !ok || files[name] == nil:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("X-Repo-Commit", "c0ffee")
			_, _ = w.Write(files[name])
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestFromHub(t *testing.T) {
	config, err := json.Marshal(object{"chat_template": "{{ messages[0].content }}"})
	if err != nil {
		t.Fatal(err)
	}
	server := newHub(t, map[string][]byte{"tokenizer.model": makeModel(spBPE), "tokenizer_config.json": config})
	hub := Hub{Client: server.Client(), Endpoint: server.URL, Token: "secret", Home: t.TempDir()}
	tok, err := FromHub(t.Context(), hub, "org/model", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Name(); got != "tokenizer.model of org/model" {
		t.Errorf("name %q", got)
	}
	// What was downloaded serves without a network from then on.
	server.Close()
	again, err := FromCache("org/model", "main", hub.Home, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Encode("ab a", true), tok.Encode("ab a", true)) {
		t.Error("the kept tokenizer differs")
	}
	dir, err := Snapshot("org/model", "c0ffee", hub.Home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadChatTemplate(dir); err != nil {
		t.Error(err)
	}
}

func TestFromHubErrors(t *testing.T) {
	server := newHub(t, nil)
	for name, test := range map[string]struct {
		hub   Hub
		model string
		want  string
	}{
		"no token":   {Hub{Endpoint: server.URL, Home: t.TempDir()}, "org/model", "HF_TOKEN"},
		"no file":    {Hub{Endpoint: server.URL, Token: "secret", Home: t.TempDir()}, "org/model", "has none of"},
		"no home":    {Hub{Endpoint: server.URL, Token: "secret"}, "org/model", "directory"},
		"bad name":   {Hub{Endpoint: server.URL, Token: "secret", Home: t.TempDir()}, "../x", "not the name"},
		"no network": {Hub{Endpoint: "http://127.0.0.1:1", Home: t.TempDir()}, "org/model", "refused"},
	} {
		if _, err := FromHub(t.Context(), test.hub, test.model, "", ""); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestServerDialects(t *testing.T) {
	for name, answer := range map[string]func(body object) any{
		"vLLM": func(b object) any {
			if text, ok := b["prompt"].(string); ok && b["add_special_tokens"] == false {
				return object{"count": countWords(text), "tokens": []int{}}
			}
			return nil
		},
		"llama.cpp": func(b object) any {
			if text, ok := b["content"].(string); ok {
				return object{"tokens": make([]int, countWords(text))}
			}
			return object{"tokens": []int{}}
		},
		"TGI": func(b object) any {
			text, ok := b["inputs"].(string)
			if !ok {
				return nil
			}
			spans := []object{{"id": 1, "start": 0, "stop": 0}}
			for i := range countWords(text) {
				spans = append(spans, object{"id": i, "start": i, "stop": i + 1})
			}
			return spans
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body object
				if r.URL.Path != "/tokenize" || json.NewDecoder(r.Body).Decode(&body) != nil {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				reply := answer(body)
				if reply == nil {
					w.WriteHeader(http.StatusUnprocessableEntity)
					return
				}
				_ = json.NewEncoder(w).Encode(reply)
			}))
			defer server.Close()
			s, err := NewServer(t.Context(), nil, server.URL+"/", "m")
			if err != nil {
				t.Fatal(err)
			}
			if s.dialect.name != name {
				t.Errorf("dialect %s, want %s", s.dialect.name, name)
			}
			if n, err := s.Count(t.Context(), "one two three"); n != 3 || err != nil {
				t.Errorf("Count = %d, %v", n, err)
			}
		})
	}
}

func TestSourcesFind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokenizer.json")
	writeFile(t, path, makeJSON(t, byteVocab("t h"), byteLevelFields))
	hub := newHub(t, map[string][]byte{"tokenizer.json": makeJSON(t, byteVocab("t h"), byteLevelFields)})
	counter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"count": 5}`))
	}))
	defer counter.Close()
	good := Hub{Endpoint: hub.URL, Token: "secret", Home: t.TempDir()}
	for _, test := range []struct {
		name    string
		sources Sources
		want    string // who counts
		passed  int
	}{
		{"path", Sources{Path: path, Server: counter.URL}, path, 0},
		{"directory", Sources{Path: dir}, path, 0},
		{"hub", Sources{Model: "org/model", Home: t.TempDir(), Online: true, Hub: good, Server: counter.URL}, "tokenizer.json of org/model", 1},
		{"local", Sources{Model: "org/model", Home: good.Home, Server: counter.URL}, "tokenizer.json of org/model", 0},
		{"server", Sources{Model: "org/model", Server: counter.URL}, "server /tokenize", 2},
		{"nothing", Sources{Model: "org/model", Server: "http://127.0.0.1:1"}, "estimate", 3},
	} {
		c, passed, err := test.sources.Find(t.Context())
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if c.Name() != test.want || len(passed) != test.passed {
			t.Errorf("%s: %q counts after %v, want %q after %d", test.name, c.Name(), passed, test.want, test.passed)
		}
		if c.Exact() != (test.want != "estimate") {
			t.Errorf("%s: exact is %v", test.name, c.Exact())
		}
	}
	if _, _, err := (Sources{Path: filepath.Join(dir, "none"), Server: counter.URL}).Find(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path that is not there: %v", err)
	}
}
