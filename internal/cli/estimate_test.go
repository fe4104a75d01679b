package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/search"
)

// slowEngine serves about 16 requests per second.
const slowEngine = `
name: slow
about: a server with concurrency 8
engine: vllm
model: slow
policy: chunked
step_tokens: 8192
max_sequences: 8
kv: {block_tokens: 16}
output: {mean: 5, max: 64}
cost:
  step:
    - {tokens: 1, ms: 100}
    - {tokens: 8192, ms: 101}
`

// A search estimates its time once, after its first probe. If the budget is too small, it names one that is not.
func TestSearchesLastAsEstimated(t *testing.T) {
	const most = 4 // times the estimate
	for _, c := range []struct{ slo, kind, budget, want string }{
		{"ttft:p90<400ms", "rate", "1h", "."},
		{"e2el:mean<700ms", "concurrency", "1h", "."},
		{"ttft:p99<900ms", "rate", "90s", ", and --budget ends it after 1m30s: it will probably be undecided. --budget "},
	} {
		t.Run(c.slo, func(t *testing.T) {
			t.Chdir(t.TempDir())
			must.Do(t, os.WriteFile("slow.yaml", []byte(slowEngine), 0o600))
			var limit search.Limit
			var stderr string
			synctest.Test(t, func(t *testing.T) {
				_, _, stderr = inside(nil, "find", "--slo", c.slo, "--find", c.kind, "--budget", c.budget, "--sim", "slow.yaml", "--random-input-len", "8", "--random-output-len", "5", "--seed", "1")
				files, err := filepath.Glob("runs/*/limit.json")
				if err != nil || len(files) != 1 {
					t.Fatal(stderr)
				}
				text, err := os.ReadFile(files[0])
				if err == nil {
					err = json.Unmarshal(text, &limit)
				}
				must.Do(t, err)
			})
			found := regexp.MustCompile(`The search takes about (\S+?)(\.|\son a server this fast)`).FindStringSubmatch(stderr)
			if found == nil || strings.Count(stderr, "The search takes about") != 1 || !strings.Contains(stderr, c.want) {
				t.Fatalf("no estimate:\n%s", stderr)
			}
			estimate, err := time.ParseDuration(found[1])
			if err != nil {
				t.Fatal(err)
			}
			took := 0.0
			for _, p := range limit.Probes {
				took += p.Seconds
			}
			if ratio := took / estimate.Seconds(); limit.Decided && (ratio > most || ratio < 1.0/most) {
				t.Errorf("%.0f s, estimated %v: %s", took, estimate, limit.Sentence)
			}
			t.Logf("%.0f s, estimated %v: %s", took, estimate, limit.Sentence)
		})
	}
}
