package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/termtext"
)

// On a terminal of 80 columns the table of probes keeps its rows whole, each probe has one message, and
// an undecided search names the next command.
func TestFindScreen(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		code := cli.Main(&cli.Env{
			Args: strings.Fields("find --sim vllm-8b-h100 --slo ttft:p99<500ms,tpot:p95<50ms,error<0.1% --budget 30s --seed 1 " +
				"--random-input-len 200 --random-output-len 20"),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Network: &network, Terminal: true,
			Getenv: func(string) string { return "" }, Width: func() int { return 80 }, Height: func() int { return 24 },
		})
		if code != 6 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		table, rest, found := strings.Cut(out.String(), "\noverloaded: ")
		if !found || !regexp.MustCompile(`\n(DEGRADED: )?SIMULATED: Undecided: `).MatchString(rest) {
			t.Fatalf("no legend or no answer:\n%s", out.String())
		}
		for i, line := range strings.Split(table, "\n") {
			if cells := strings.Fields(line); termtext.Width(line) > 80 || i > 0 && len(cells) < 6 {
				t.Errorf("line %d of the table: %q", i, line)
			}
		}
		if text := errs.String(); strings.Contains(text, " finished in ") || strings.Count(text, "Probe 1,") != 1 || !strings.Contains(text, "Next, give the search more time:\n  tacho find --sim vllm-8b-h100 --random-input-len 200 --random-output-len 20 ") {
			t.Errorf("messages:\n%s", text)
		}
	})
}
