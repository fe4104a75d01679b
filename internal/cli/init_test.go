package cli_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

// TestServerAnswersWithoutUse checks that a server that requires a key or has
// another path is not reported as unreachable. init and bench name a fix, and
// init writes no plan.
func TestServerAnswersWithoutUse(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		path    string
		key     string
		want    []string
	}{
		"401": {status(http.StatusUnauthorized), "", "", []string{"requires an API key, set OPENAI_API_KEY or --api-key-file", "/v1/models: status 401"}},
		"403": {status(http.StatusForbidden), "", "sk-secret-1", []string{"rejects the API key of OPENAI_API_KEY", "/v1/models: status 403"}},
		"404": {status(http.StatusNotFound), "/foo", "", []string{"answers 404 at ", "/foo/v1/models", "check the path of --base-url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			synctest.Test(t, func(t *testing.T) {
				srv := listen(t, test.handler)
				defer srv.Close()
				for _, line := range []string{"init", "bench", "bench --backend auto"} {
					args := append(strings.Fields(line), "--base-url", srv.URL+test.path)
					code, stdout, stderr := inside(map[string]string{"OPENAI_API_KEY": test.key}, args...)
					for _, want := range test.want {
						if code == 0 || !strings.Contains(stderr, want) || strings.Contains(stdout+stderr, "No server answered") {
							t.Errorf("%s: exit code %d, without %q: %s%s", line, code, want, stdout, stderr)
						}
					}
				}
			})
			if _, err := os.Stat("tacho.yaml"); err == nil {
				t.Error("init wrote a plan")
			}
		})
	}
}

// status answers every request with a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}
