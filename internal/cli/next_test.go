package cli_test

import (
	"strings"
	"testing"
)

// TestNextKeepsSLO checks that the next command has the SLO of the run, with every limit.
func TestNextKeepsSLO(t *testing.T) {
	const slo = "--slo 'ttft:p95<900ms,error<1%'"
	for load, want := range map[string]string{
		"--max-concurrency 2,4 --num-prompts 20": "Next, find the highest load that keeps an SLO: tacho find --virtual --sim vllm-8b-h100 " + slo,
		"--num-prompts 20":                       "Next, run longer, because a p99 needs 100 requests: tacho bench --virtual --sim vllm-8b-h100 " + slo + " --num-prompts 100",
	} {
		args := append(strings.Fields("bench --virtual --sim vllm-8b-h100 --seed 1 --slo ttft:p95<900ms,error<1% --no-html --runs-dir"), t.TempDir())
		code, stdout, stderr := inside(nil, append(args, strings.Fields(load)...)...)
		if all := strings.ReplaceAll(stdout+stderr, " --seed 1", ""); code != 0 || !strings.Contains(all, want) {
			_, next, _ := strings.Cut(all, "Next, ")
			t.Errorf("%s: exit code %d, Next, %s\nwant %s", load, code, next, want)
		}
	}
}
