package proof

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// BenchmarkCommandPeer compares the CPU time per request with vllm-bench, the
// Rust client of the vLLM project, alternating, from process start to exit.
// PEER is the path of vllm-bench, PEER_TOKENIZER a tokenizer directory for
// both.
func BenchmarkCommandPeer(b *testing.B) {
	peer, tokenizer := os.Getenv("PEER"), os.Getenv("PEER_TOKENIZER")
	if peer == "" || tokenizer == "" {
		b.Skip("there is no PEER with a PEER_TOKENIZER")
	}
	ours := must.Get(built())(b)
	const rate, seconds, turns = 500, 15, 3
	for b.Loop() {
		for _, shape := range []struct{ input, output int }{{4, 2}, {4, 8}, {128, 16}, {1024, 2}} {
			url := servers(b, 1, "20ms", "10ms")[0]
			same := []string{
				"--backend", "vllm", "--base-url", url, "--model", "sim", "--tokenizer", tokenizer, "--dataset-name", "random", "--random-input-len", strconv.Itoa(shape.input),
				"--random-output-len", strconv.Itoa(shape.output), "--request-rate", strconv.Itoa(rate), "--num-prompts", strconv.Itoa(rate * seconds), "--disable-tqdm",
			}
			var tacho, other string
			for range turns {
				tacho += spent(b, rate*seconds, ours, append([]string{"bench", "--runs-dir", b.TempDir()}, same...))
				other += spent(b, rate*seconds, peer, same)
			}
			b.Logf("%d tokens in, %d out, %d/s: tacho%s us a request, vllm-bench%s", shape.input, shape.output, rate, tacho, other)
		}
		b.ReportMetric(0, "ns/op")
	}
}

// spent returns the CPU time of a program in microseconds per request.
//
// hermetic: only the benchmark starts programs.
func spent(b *testing.B, requests int, program string, flags []string) string {
	b.Helper()
	cmd := exec.Command(program, flags...)
	cmd.Dir = b.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", program, err, out)
	}
	return fmt.Sprintf(" %.0f", (cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Seconds()*1e6/float64(requests))
}
