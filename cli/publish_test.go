package cli_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// While a run goes on, Prometheus can read its figures, and a collector gets
// them; the last that it gets are those of the whole run.
func TestPublishes(t *testing.T) {
	var mu sync.Mutex
	last, key := "", ""
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		last, key = string(body), r.Header.Get("X-Key")
	}))
	defer collector.Close()
	cmd := exec.CommandContext(t.Context(), "tacho", "bench", "--request-rate", "20", "--num-prompts", "20", "--random-input-len", "20", "--random-output-len", "3",
		"--runs-dir", t.TempDir(), "--metrics-listen", "127.0.0.1:0", "--otlp-endpoint", collector.URL, "--otlp-header", "x-key=abc")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	page := ""
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "Figures while it runs: "); ok {
			page = read(t, at)
		}
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 4 { // a busy machine may spoil the load
		t.Error(err)
	}
	if !strings.Contains(page, `backend="`) {
		t.Errorf("the page is %q", page)
	}
	if !strings.Contains(last, `"outcome"`) || !strings.Contains(last, `"asDouble":20`) || key != "abc" {
		t.Errorf("key %q, body %s", key, last)
	}
}

func read(t *testing.T, at string) string {
	t.Helper()
	resp, err := http.Get(at)
	if err != nil {
		t.Error(err)
		return ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return string(body)
}
