package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// TestSearchesLastAsEstimated runs searches on the simulated engine, in virtual time.
func TestSearchesLastAsEstimated(t *testing.T) {
	for slo, kind := range map[string]search.Kind{"ttft:p90<400ms": search.Rate, "ttft:p99<900ms,error<1%": search.Rate, "e2el:mean<700ms": search.Concurrency} {
		t.Run(slo, func(t *testing.T) {
			t.Chdir(t.TempDir())
			must.Do(t, os.WriteFile("slow.yaml", []byte(slowEngine), 0o600))
			var limit search.Limit
			synctest.Test(t, func(t *testing.T) {
				code, _, stderr := inside(nil, "find", "--slo", slo, "--find", string(kind), "--virtual", "--sim", "slow.yaml", "--random-input-len", "8", "--random-output-len", "5", "--seed", "1")
				files, err := filepath.Glob("runs/*/limit.json")
				if err != nil || len(files) != 1 || code != 0 {
					t.Fatalf("exit code %d: %s", code, stderr)
				}
				text, err := os.ReadFile(files[0])
				if err == nil {
					err = json.Unmarshal(text, &limit)
				}
				must.Do(t, err)
			})
			goals := must.Get(search.ParseSLO(slo))(t)
			took := 0.0
			for _, p := range limit.Probes {
				took += p.Seconds
			}
			e := search.New(kind, goals).Estimate(limit.Probes[*limit.Probe].Served)
			got := time.Duration(took * float64(time.Second))
			if got < e.Shortest || got > e.Longest {
				t.Errorf("%v, want %v to %v: %s", got, e.Shortest, e.Longest, limit.Sentence)
			}
			if n := len(limit.Probes); n < e.MinSteps || n > e.MaxSteps {
				t.Errorf("%d probes, want %d to %d", n, e.MinSteps, e.MaxSteps)
			}
			t.Logf("%v of %v to %v, %d probes of %d to %d, limit %v", got, e.Shortest, e.Longest, len(limit.Probes), e.MinSteps, e.MaxSteps, limit.Load)
		})
	}
}
