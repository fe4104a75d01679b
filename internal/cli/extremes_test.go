package cli_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/plan"
)

// extremes are values at the ends of what numbers can represent.
var extremes = []string{"0", "-1", "1e-320", "1e-10", "0.000001", "1e9", "1e300", "1.7976931348623157e308", "9223372036854775807", "18446744073709551616", "inf", "nan"}

// tiny is a prediction that takes some milliseconds.
func tiny(t *testing.T, more ...string) []string {
	args := []string{"predict"}
	for _, f := range [][2]string{{"--engine", "vllm-8b-h100"}, {"--num-prompts", "8"}, {"--random-input-len", "10"}, {"--random-output-len", "4"}, {"--runs-dir", t.TempDir()}} {
		if !slices.Contains(more, f[0]) {
			args = append(args, f[0], f[1])
		}
	}
	return append(args, more...)
}

// ends runs a command and fails if it panics or does not end. The time is only there to find a command that never ends.
func ends(t *testing.T, args []string) (code int, stderr string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("%s: panic: %v", strings.Join(args, " "), p)
			}
		}()
		code, _, stderr = inside(nil, args...)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s: does not end", strings.Join(args, " "))
	}
	return code, stderr
}

// TestReportedExtremes checks commands that panicked or never ended.
func TestReportedExtremes(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{tiny(t, "--request-rate", "1e-10"), "want at least 1e-06"},
		{tiny(t, "--request-rate", "1", "--gpu-price", "1e308"), "use the price per hour"},
		{[]string{"find", "--sim", "vllm-8b-h100", "--slo", "ttft:p99<1e300ms"}, "at most 3.6e+06"},
		{[]string{"bench", "--base-url", "http://127.0.0.1:1", "--request-rate", "1e-320", "--max-seconds", "1"}, "want at least 1e-06"},
		{[]string{"bench", "--base-url", "http://127.0.0.1:1", "--num-prompts", "9223372036854775807"}, "at most"},
		{tiny(t, "--request-rate", "0.000001", "--num-prompts", "100000"), "years"},
	} {
		code, stderr := ends(t, c.args)
		if code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %s, want %s", strings.Join(c.args, " "), code, stderr, c.want)
		}
	}
}

// TestExtremeNumbers gives every numeric option of predict extreme values. Each is refused, or the prediction ends.
func TestExtremeNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of predictions")
	}
	// These only need time and memory in proportion to their value, which has a limit.
	costly := []string{"num-prompts", "num-warmups", "repeat", "random-output-len", "random-input-len", "draws", "replicas"}
	p := plan.Default()
	ran := 0
	for _, o := range p.Options() {
		if slices.Contains(costly, o.Name) {
			continue
		}
		switch o.Value.(type) {
		case *string, *[]string, *bool:
			continue
		}
		for _, value := range extremes {
			set := plan.Default()
			options := set.Options()
			if i := slices.IndexFunc(options, func(other plan.Option) bool { return other.Name == o.Name }); options[i].Set(value) != nil {
				continue // refused before anything starts
			}
			args := tiny(t, "--"+o.Name, value)
			if o.Name != "request-rate" && o.Name != "max-concurrency" {
				args = append(args, "--request-rate", "100")
			}
			ran++
			code, stderr := ends(t, args)
			if code != 0 && !strings.Contains(stderr, "tacho: ") && !strings.Contains(stderr, "INVALID") {
				t.Errorf("--%s %s: code %d without a reason: %s", o.Name, value, code, stderr)
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d predictions", ran)
	}
}

// TestExtremeSearches gives the numeric options of find, and the numbers of its goal, extreme values. Each is refused, or the search ends.
func TestExtremeSearches(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred searches")
	}
	lines := []string{}
	for _, value := range extremes {
		for _, flag := range []string{"--from", "--to", "--within", "--budget", "--seed", "--burstiness", "--temperature", "--max-seconds"} {
			lines = append(lines, flag+" "+value)
		}
		lines = append(lines, "--slo ttft:p99<"+value, "--slo ttft:p"+value+"<1s", "--slo error<"+value)
	}
	for _, line := range lines {
		args := []string{"find", "--virtual", "--sim", "vllm-8b-h100", "--random-input-len", "10", "--random-output-len", "2", "--no-html", "--runs-dir", t.TempDir()}
		for _, f := range [][2]string{{"--from", "1"}, {"--to", "2"}, {"--budget", "5s"}, {"--slo", "ttft:p99<1s"}} {
			if !strings.HasPrefix(line, f[0]+" ") {
				args = append(args, f[0], f[1])
			}
		}
		code, stderr := ends(t, append(args, strings.Fields(line)...))
		if code == 2 && !strings.Contains(stderr, "tacho: ") || code == 1 && !strings.Contains(stderr, "tacho: ") {
			t.Errorf("%s: code %d without a reason: %s", line, code, stderr)
		}
	}
}

// TestExtremeBench checks that a measurement with an extreme rate ends at its limit of time, in virtual time.
func TestExtremeBench(t *testing.T) {
	for _, rate := range []string{"1e-320", "1e-10", "0.000001", "0.001", "1e300", "inf"} {
		synctest.Test(t, func(t *testing.T) {
			srv := listen(t, simulated(t))
			defer srv.Close()
			start := time.Now()
			code, _, stderr := inside(nil, "bench", "--base-url", srv.URL, "--backend", "vllm", "--model", "tiny", "--skip-tokenizer-init", "--request-rate", rate, "--num-prompts", "5",
				"--max-seconds", "1", "--random-input-len", "5", "--random-output-len", "2", "--runs-dir", filepath.Join(t.TempDir(), "runs"))
			if took := time.Since(start); took > time.Hour || strings.Contains(stderr, "panic") {
				t.Errorf("--request-rate %s: code %d after %v: %s", rate, code, took, stderr)
			}
		})
	}
}
