package cli_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A fit to a text report foretells the runs that it had not seen, and explains those
// that it had. Each fit takes minutes: make test-seeds.
func TestFitToSeeds(t *testing.T) {
	if os.Getenv("FIT_SEEDS") == "" {
		t.Skip("make test-seeds")
	}
	for _, s := range []struct {
		name            string
		inSample, apart float64 // percent, the mean of five means
	}{{"000_902df92d1b3a4732", 4, 10}, {"001_8b5b9f497242493f", 4, 5}} {
		t.Run(s.name[:3], func(t *testing.T) {
			got := tacho(t, nil, nil, "fit", "--budget", "10m", filepath.Join("../testdata/seeds", s.name+".txt"))
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

// meanErrors are the means, over TTFT, TPOT, ITL, throughput and duration, of the
// mean errors that a fit prints: of the levels it saw, and of those held out.
func meanErrors(t *testing.T, out string) (in, apart float64) {
	t.Helper()
	number := regexp.MustCompile(`([0-9.]+) %`)
	var all []float64
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "mean size") {
			continue
		}
		var cells []float64 // TTFT, its p99, TPOT, ITL, requests/s: reports do not state E2EL
		for _, m := range number.FindAllStringSubmatch(line, -1) {
			v, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			cells = append(cells, v)
		}
		if len(cells) != 5 {
			t.Fatalf("not five figures: %s", line)
		}
		throughput := cells[4]
		all = append(all, (cells[0]+cells[2]+cells[3]+2*throughput)/5) // a duration is as far off as requests/s
	}
	if len(all) != 2 {
		return math.NaN(), math.NaN()
	}
	return all[0], all[1]
}
