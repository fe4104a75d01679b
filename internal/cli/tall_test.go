package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// A level that is higher than the terminal ends with its conclusion, because the first lines
// have left the screen.
func TestTallLevelRepeatsItsConclusion(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for high, want := range map[int]int{24: 2, 200: 1} {
			var out, errs bytes.Buffer
			code := cli.Main(&cli.Env{
				Args:  []string{"bench", "--virtual", "--sim", "vllm-8b-h100", "--num-prompts", "20", "--random-output-len", "5", "--no-html", "--runs-dir", dir},
				Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Network: &network, Terminal: true,
				Getenv: func(string) string { return "" }, Width: func() int { return 80 }, Height: func() int { return high },
			})
			if got := strings.Count(out.String(), "PREDICTED: 20 requests at once took"); code != 0 || got != want {
				t.Errorf("height %d: exit code %d, the conclusion is printed %d times:\n%s%s", high, code, got, out.String(), errs.String())
			}
		}
	})
}
