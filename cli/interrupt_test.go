package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"tacho/cli"
)

// Ctrl-C while a server is asked what it serves is Ctrl-C, and no server that
// cannot be reached.
func TestInterruptedWhileAsking(t *testing.T) {
	t.Chdir(t.TempDir())
	interrupt := make(chan os.Signal, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case interrupt <- os.Interrupt:
		default:
		}
		<-r.Context().Done()
	}))
	defer srv.Close()
	var out, errs strings.Builder
	code := cli.Main(&cli.Env{
		Args: []string{"bench", "--base-url", srv.URL}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(int) { t.Error("killed") },
	})
	if code != 130 || strings.Contains(errs.String(), "reach") || strings.Contains(errs.String(), "canceled") || strings.Contains(errs.String(), "kept") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
