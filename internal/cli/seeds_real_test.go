//go:build real

package cli_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// A fit to a text report predicts held-out runs and explains the others. Each
// fit takes minutes: make test-seeds.
func TestRealFitToSeeds(t *testing.T) {
	if os.Getenv("FIT_SEEDS") == "" {
		t.Skip("make test-seeds")
	}
	for _, s := range []struct {
		name            string
		inSample, apart float64 // percent, mean of five means
	}{{"000_902df92d1b3a4732", 4, 10}, {"001_8b5b9f497242493f", 4, 5}} {
		t.Run(s.name[:3], func(t *testing.T) {
			got := tacho(t, nil, nil, "fit", "--budget", "10m", filepath.Join("../../testdata/seeds", s.name+".txt"))
			if got.code != 0 {
				t.Fatalf("exit code %d: %s", got.code, got.errors)
			}
			t.Log(got.out)
			in, apart := meanErrors(t, got.out)
			if !(in <= s.inSample) || !(apart <= s.apart) {
				t.Errorf("off by %.1f %% in sample and by %.1f %% held out, want %v and %v", in, apart, s.inSample, s.apart)
			}
		})
	}
}

// meanErrors parses the output of a fit and averages its mean errors over TTFT,
// TPOT, ITL, throughput and duration, for fitted and for held-out levels.
func meanErrors(t *testing.T, out string) (in, apart float64) {
	t.Helper()
	number := regexp.MustCompile(`([0-9.]+) %`)
	var all []float64
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "mean size") {
			continue
		}
		var cells []float64 // TTFT, its p99, TPOT, ITL, requests/s; reports do not contain E2EL
		for _, m := range number.FindAllStringSubmatch(line, -1) {
			v := must.Get(strconv.ParseFloat(m[1], 64))(t)
			cells = append(cells, v)
		}
		if len(cells) != 5 {
			t.Fatalf("not five figures: %s", line)
		}
		throughput := cells[4]
		all = append(all, (cells[0]+cells[2]+cells[3]+2*throughput)/5) // a duration has the same error as requests/s
	}
	if len(all) != 2 {
		return math.NaN(), math.NaN()
	}
	return all[0], all[1]
}

// A seedRun is a run of a report and its command.
type seedRun struct {
	profile, speedup string
	flags            string
	want             [5]float64 // mean TTFT, TPOT and ITL in ms, output tokens/s, duration in s; 0 if unknown
}

var (
	lengths000 = "--ignore-eos=false --random-output-len 150 --random-input-len "
	bursts000  = []seedRun{
		{"vllm-405b-mi300x", "10", lengths000 + "80 --num-prompts 16", [5]float64{1034.69, 63.38, 61.59, 142.52, 6.57}},
		{"vllm-405b-mi300x", "10", lengths000 + "81 --num-prompts 128", [5]float64{5161.26, 298.29, 286.41, 273.89, 27.70}},
		{"vllm-405b-mi300x", "10", lengths000 + "81 --num-prompts 512", [5]float64{27060.36, 419.23, 406.60, 402.21, 75.58}},
		{"vllm-405b-mi300x", "10", lengths000 + "10000 --num-prompts 16", [5]float64{105158.97, 512.55, 507.65, 9.29, 206.97}},
	}
	bursts002 = []seedRun{
		{"prefill-decode-002", "2", "--random-input-len 8191 --random-output-len 1 --num-prompts 512", [5]float64{25793.19, 0, 0, 10.06, 50.87}},
		{"prefill-decode-002", "2", "--random-input-len 1 --random-output-len 128 --num-prompts 512", [5]float64{15266.31, 7.28, 7.29, 2131.64, 30.74}},
	}
	open003 = seedRun{
		"rate-limited-003", "4",
		"--ignore-eos=false --random-input-len lognormal(138,1.129)[4,1024] --random-output-len 1024 --request-rate 2.98 --num-prompts 3000",
		[5]float64{463.85, 66.78, 65.71, 1900.04, 1055.18},
	}
)

// Simulated engines reproduce their reports over HTTP, with lengths drawn from
// their profiles. For 000 some rows are enough, because small rows depend on a
// few random lengths. In 003 the queueing time depends on the order of
// requests, so the mean over several orders in virtual time is compared with
// the report, and one order over HTTP with the same order in virtual time.
// Needs a quiet machine: make test-seeds.
func TestRealSeedsOverTheWire(t *testing.T) {
	if os.Getenv("FIT_SEEDS") == "" {
		t.Skip("make test-seeds")
	}
	for name, runs := range map[string][]seedRun{"000": bursts000, "002": bursts002} {
		t.Run(name, func(t *testing.T) {
			sum := 0.0
			for _, r := range runs {
				off := meanOff(t, r.figures(t, "1", "--sim-speedup", r.speedup), r.want)
				t.Logf("%s: %.1f %% off", r.flags, off)
				sum += off
			}
			if mean := sum / float64(len(runs)); mean > 6 {
				t.Errorf("off by %.1f %%, want at most 6", mean)
			}
		})
	}
	t.Run("003", func(t *testing.T) {
		var mean [5]float64
		const orders = 16
		for seed := range orders {
			for i, v := range open003.figures(t, strconv.Itoa(seed+1), "--virtual") {
				mean[i] += v / orders
			}
		}
		off := meanOff(t, mean, open003.want)
		t.Logf("%.1f %% off", off)
		if off > 6 {
			t.Errorf("off by %.1f %%, want at most 6", off)
		}
		measured, text := open003.run(t, "4", "--sim-speedup", open003.speedup)
		over := meanOff(t, measured, open003.figures(t, "4", "--virtual"))
		t.Logf("over HTTP: %.1f %% off what was computed", over)
		if stolen := regexp.MustCompile(`client-steal: .*`).FindString(text); over > 3 && stolen != "" {
			t.Skipf("the machine was not quiet, and what is late by a millisecond is late by four here: %s", stolen)
		}
		if over > 3 {
			t.Errorf("over HTTP: off by %.1f %%, want at most 3", over)
		}
	})
}

// figures returns the results of the run.
func (r seedRun) figures(t *testing.T, seed string, how ...string) [5]float64 {
	t.Helper()
	out, _ := r.run(t, seed, how...)
	return out
}

// run executes the run and returns its results and its output.
func (r seedRun) run(t *testing.T, seed string, how ...string) (out [5]float64, text string) {
	t.Helper()
	args := append([]string{"bench", "--sim", r.profile, "--seed", seed, "--runs-dir", t.TempDir()}, how...)
	said, err := exec.Command("tacho", append(args, strings.Fields(r.flags)...)...).CombinedOutput() // as a process, because it starts another process
	text = string(said)
	if err != nil && !strings.Contains(text, "Mean TTFT") {
		t.Fatalf("%v: %s", err, text)
	}
	for i, name := range []string{"Mean TTFT (ms):", "Mean TPOT (ms):", "Mean ITL (ms):", "Output token throughput (tok/s):", "Benchmark duration (s):"} {
		_, rest, found := strings.Cut(text, name)
		v, err := strconv.ParseFloat(strings.Fields(rest + " x")[0], 64)
		if !found || err != nil {
			t.Fatalf("no %s %v in\n%s", name, err, text)
		}
		out[i] = v
	}
	t.Logf("%v %v: %.4g", r.profile, how, out)
	return out, text
}

// meanOff returns the mean absolute error in percent.
func meanOff(t *testing.T, got, want [5]float64) float64 {
	t.Helper()
	sum, n := 0.0, 0.0
	for i := range want {
		if want[i] > 0 {
			sum += 100 * math.Abs(got[i]/want[i]-1)
			n++
		}
	}
	return sum / n
}
