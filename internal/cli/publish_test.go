package cli_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// During a run, Prometheus can read its metrics and a collector receives them.
// The last metrics sent cover the entire run.
func TestPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last, key := "", ""
		collector := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			last, key = string(body), r.Header.Get("X-Key") // Protobuf has strings as they are
		}))
		defer collector.Close()
		out, in := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			args := []string{
				"bench", "--sim", "vllm-8b-h100", "--request-rate", "20", "--num-prompts", "20", "--random-input-len", "20", "--random-output-len", "3",
				"--runs-dir", t.TempDir(), "--metrics-listen", "127.0.0.1:0", "--otlp-endpoint", collector.URL, "--otlp-header", "x-key=abc",
			}
			ended <- cli.Main(&cli.Env{
				Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: in, Network: &network,
				Getenv: func(string) string { return "" }, Width: func() int { return 80 },
			})
			_ = in.Close()
		}()
		page, final, address := "", "", ""
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "Metrics during the run: "); ok {
				page, address = read(t, at), at
			}
			if strings.HasPrefix(lines.Text(), "Waiting up to 15s for the last scrape of "+address) {
				final = read(t, address)
			}
		}
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d", code)
		}
		if !strings.Contains(page, `backend="`) {
			t.Errorf("the page is %q", page)
		}
		if !strings.Contains(final, `outcome="ok"} 20.0`) || !strings.Contains(final, `tacho_e2el_seconds_count{run="2`) {
			t.Errorf("the last page is %q", final)
		}
		if !strings.Contains(last, "outcome") || !strings.Contains(last, "tacho_requests") || key != "abc" {
			t.Errorf("key %q, body %s", key, last)
		}
	})
}

func read(t *testing.T, at string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: network.Dial}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(at)
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
