//go:build coverage

package cli_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// 88 to 99 % of the confidence intervals of runs contain the values of 2 runs
// of 300,000 requests. RUNS is the number of runs per row, FIRST their first
// seed.
func TestCoverageOfReports(t *testing.T) {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	at := func(rate string, more ...string) []string {
		return append(append([]string{"--request-rate", rate}, varied...), more...)
	}
	for _, r := range []coverageRow{
		{"h100 varied 15/s, n=1,000", "vllm-8b-h100", 1000, at("15")},
		{"h100 varied 23/s, n=1,000", "vllm-8b-h100", 1000, at("23")},
		{"h100 varied 23/s, n=4,000", "vllm-8b-h100", 4000, at("23")},
		{"h200 varied 28/s, n=1,000", "vllm-8b-h200", 1000, at("28")},
		{"sglang fixed 4/s, n=1,000", "sglang-70b-h100x4", 1000, []string{"--request-rate", "4"}},
		{"sglang varied 7/s, n=1,000", "sglang-70b-h100x4", 1000, at("7")},
		{"h100 closed 32 varied, n=600", "vllm-8b-h100", 600, append([]string{"--max-concurrency", "32"}, varied...)},
		{"h100 burstiness 0.2, n=1,000", "vllm-8b-h100", 1000, at("15", "--burstiness", "0.2")},
	} {
		t.Run(r.name, func(t *testing.T) {
			runs := number("RUNS", 200)
			table := r.cover(t, runs, number("LONG", 300_000), 2, number("FIRST", 100_000))
			for _, name := range slices.Sorted(maps.Keys(table)) {
				h := table[name]
				t.Logf("%-30s %-10s %5.1f %% of %3d hold, %d are too low", r.name, name, 100*h.share(), h.given, h.low)
				if enough := runs / 4; h.given >= enough && (h.share() < 0.88 || h.share() > 0.99) {
					t.Errorf("%s: %.1f %% of %d hold", name, 100*h.share(), h.given)
				}
			}
		})
	}
}
