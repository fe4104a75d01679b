//go:build real

package proof

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestRealFleetAgainstHTTP compares predictions for four replicas behind each
// router with measurements of four simulated servers on loopback, with the same
// requests at the same times. It needs a quiet machine: `make test-fleet`.
func TestRealFleetAgainstHTTP(t *testing.T) {
	requests := os.Getenv("FLEET")
	if requests == "" {
		t.Skip("make test-fleet runs it")
	}
	dir := t.TempDir()
	tool := must.Get(built())(t)
	load := []string{
		"--seed", "7", "--num-prompts", requests, "--request-rate", "40", "--dataset-name", "prefix_repetition", "--prefix-repetition-prefix-len", "256",
		"--prefix-repetition-suffix-len", "256", "--prefix-repetition-num-prefixes", "16", "--prefix-repetition-output-len", "64", "--percentile-metrics", "ttft,tpot,e2el",
	}
	for _, router := range []string{"round-robin", "random", "least-loaded", "power-of-two", "prefix", "sticky"} {
		t.Run(router, func(t *testing.T) {
			var urls []string
			for i := range 4 {
				urls = append(urls, startEngine(t, tool, i))
			}
			at := func(name string) []string {
				return append([]string{"--router", router, "--no-html", "--runs-dir", filepath.Join(dir, router+name)}, load...)
			}
			bench := append([]string{"bench", "--backend", "vllm"}, at("measured")...)
			for _, u := range urls {
				bench = append(bench, "--base-url", u)
			}
			measured := figuresOf(t, tool, bench, filepath.Join(dir, router+"measured"))
			predicted := figuresOf(t, tool, append([]string{"predict", "--engine", "vllm-8b-h100", "--replicas", "4"}, at("predicted")...), filepath.Join(dir, router+"predicted"))
			for name, m := range measured {
				p, most := predicted[name], 0.05
				if strings.Contains(name, "p99") {
					most = 0.15
				}
				off := p/m - 1
				t.Logf("%-12s %-10s measured %8.2f  predicted %8.2f  %+.1f %%", router, name, m, p, 100*off)
				if !(math.Abs(off) <= most) {
					t.Errorf("%s of %s is %.1f %% off", name, router, 100*off)
				}
			}
		})
	}
}

// startEngine starts a simulated server that exits with the test.
func startEngine(t *testing.T, tool string, i int) string {
	t.Helper()
	cmd := exec.Command(tool, "sim", "--child", "--host", "127.0.0.1", "--port", "0", "--profile", "vllm-8b-h100", "--seed", fmt.Sprint(7+i))
	stdin := must.Get(cmd.StdinPipe())(t)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close() // makes the server exit
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url := regexp.MustCompile(`http://\S+`).FindString(line)
	if url == "" {
		t.Fatalf("no address in %q: %v", line, err)
	}
	return url
}

// figuresOf runs tacho and returns means and p99 of its report.
func figuresOf(t *testing.T, tool string, args []string, runs string) map[string]float64 {
	t.Helper()
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Logf("%s: %v (%d processors)\n%.3000s", args[0], err, runtime.NumCPU(), out)
	}
	kept, err := filepath.Glob(filepath.Join(runs, "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v in %s: %v", kept, runs, err)
	}
	text := must.Get(exec.Command(tool, "report", kept[0], "--format", "jsonl").Output())(t)
	var row map[string]any
	must.Do(t, json.Unmarshal(text, &row))
	out := map[string]float64{}
	for _, name := range []string{"mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "mean_e2el_ms", "p99_e2el_ms", "request_throughput"} {
		if v, ok := row[name].(float64); ok {
			out[name] = v
		}
	}
	if len(out) < 6 {
		t.Fatalf("the report has %v of %s", out, text)
	}
	return out
}
