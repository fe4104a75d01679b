package backend_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
)

func TestServerQueries(t *testing.T) {
	answers := map[string]string{
		"GET /v1/models": `{"object":"list","data":[{"id":"m","root":"org/m","max_model_len":4096},{"id":"adapter"}]}`,
		"GET /info":      `{"model_id":"org/m","max_total_tokens":2048}`,
		`POST /tokenize {"model":"m","prompt":"a b","add_special_tokens":true}`:                              `{"count":3,"max_model_len":4096,"tokens":[1,2,3]}`,
		`POST /tokenize {"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a b"}]}]}`: `{"count":11,"max_model_len":4096,"tokens":[]}`,
		`POST /tokenize {"inputs":"a b"}`: `[{"id":1,"text":"a","start":0,"stop":1},{"id":2,"text":" b","start":1,"stop":3}]`,
	}
	srv := httptest.NewServer(http.StripPrefix("/proxy", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer, ok := answers[strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body))]
		if !ok || r.Header.Get("Authorization") != "Bearer sk-verysecret" {
			http.Error(w, "unexpected "+r.URL.Path+" "+string(body), http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, answer)
	})))
	defer srv.Close()
	openAI := []backend.Model{{ID: "m", Root: "org/m", MaxLen: 4096}, {ID: "adapter"}}
	for _, tc := range []struct {
		kind   string
		models []backend.Model
		count  int
	}{
		{"vllm", openAI, 3},
		{"openai", openAI, 3},
		{"openai-chat", openAI, 11},
		{"openai-audio", openAI, 3},
		{"tgi", []backend.Model{{ID: "org/m", Root: "org/m", MaxLen: 2048}}, 2},
	} {
		kind := must.Get(backend.Find(tc.kind))(t)
		s := newBackend(t, tc.kind, srv.URL, backend.Options{
			Model: "m", Endpoint: "/proxy" + kind.Endpoint, Header: http.Header{"Authorization": {"Bearer sk-verysecret"}},
		}).(backend.Server)
		models, err := s.Models(t.Context())
		if diff := cmp.Diff(tc.models, models); diff != "" || err != nil {
			t.Errorf("%s: models %v (-want +got):\n%s", tc.kind, err, diff)
		}
		if n, err := s.CountTokens(t.Context(), &tacho.Input{Text: "a b"}); n != tc.count || err != nil {
			t.Errorf("%s: %d tokens, %v, want %d", tc.kind, n, err, tc.count)
		}
	}
	// A prefix before the endpoint of the protocol applies to all paths of the protocol.
	s := newBackend(t, "openai-audio", srv.URL, backend.Options{
		Model: "m", Endpoint: "/proxy/v1/audio/translations", Header: http.Header{"Authorization": {"Bearer sk-verysecret"}},
	}).(backend.Server)
	if models, err := s.Models(t.Context()); len(models) != 2 || err != nil {
		t.Errorf("models %v, %v", models, err)
	}
}

func TestServerQueriesThatFail(t *testing.T) {
	for _, tc := range []struct {
		name       string
		serve      http.HandlerFunc
		noEndpoint bool
		says       string
	}{
		{"not found", status(404, "application/json", `{"detail":"Not Found"}`), true, "no such endpoint"},
		{"not allowed", status(405, "", ""), true, "no such endpoint"},
		{"not implemented", status(501, "", ""), true, "no such endpoint"},
		{"forbidden", status(403, "application/json", `{"error":"bad key sk-verysecret"}`), false, "bad key [redacted]"},
		{"no JSON", typed("text/html", "<html>"), false, "<html>"},
		{"cut short", typed("application/json", `{"data":[`), false, "end of JSON"},
	} {
		for _, kind := range backend.Kinds {
			t.Run(kind.Name+"/"+tc.name, func(t *testing.T) {
				srv := httptest.NewServer(tc.serve)
				defer srv.Close()
				s := newBackend(t, kind.Name, srv.URL, backend.Options{Header: http.Header{"X-Api-Key": {"sk-verysecret"}}}).(backend.Server)
				_, err1 := s.Models(t.Context())
				_, err2 := s.CountTokens(t.Context(), &tacho.Input{Text: "a"})
				for _, err := range []error{err1, err2} {
					if err != nil && strings.Contains(err.Error(), "cannot count tokens") && errors.Is(err, backend.ErrNoEndpoint) {
						continue // not queried
					}
					if err == nil || errors.Is(err, backend.ErrNoEndpoint) != tc.noEndpoint || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "verysecret") {
						t.Errorf("error %v, want one that says %q", err, tc.says)
					}
				}
			})
		}
	}
	b := must.Get(find(t, "vllm").New(backend.Options{Client: unreachable(t)}))(t)
	s := b.(backend.Server)
	if _, err := s.Models(t.Context()); err == nil || errors.Is(err, backend.ErrNoEndpoint) {
		t.Errorf("unreachable server, but the error is %v", err)
	}
}
