package sim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// With an API key, POST requests need it, as a bearer token or as x-api-key.
func TestAPIKey(t *testing.T) {
	s := must.Get(New(Options{APIKey: "secret"}))(t)
	defer func() { _ = s.Close() }()
	for _, tc := range []struct {
		method, path, header, value string
		want                        int
	}{
		{"POST", "/v1/completions", "", "", http.StatusUnauthorized},
		{"POST", "/v1/completions", "Authorization", "Bearer wrong", http.StatusUnauthorized},
		{"POST", "/v1/completions", "Authorization", "Bearer secret", http.StatusOK},
		{"POST", "/v1/completions", "X-Api-Key", "secret", http.StatusOK},
		{"GET", "/metrics", "", "", http.StatusOK},
	} {
		r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(`{"model":"sim","prompt":"one two","max_tokens":1}`))
		r.Header.Set(tc.header, tc.value)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != tc.want {
			t.Errorf("%s %s with %s %s: status %d, want %d: %s", tc.method, tc.path, tc.header, tc.value, w.Code, tc.want, w.Body)
		}
	}
}
