package step

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

var update = flag.Bool("update", false, "write the golden file")

var fitOnce = sync.OnceValues(func() ([]fitRow, error) { return compareAll(context.Background()) })

func fitRows(t *testing.T) []fitRow {
	t.Helper()
	if testing.Short() {
		t.Skip("simulates 130 million tokens")
	}
	return must.Get(fitOnce())(t)
}

// Every measure of every report is simulated within 5 percent.
func TestFitWithinFivePercent(t *testing.T) {
	rows := fitRows(t)
	for _, sys := range seedSystems {
		means := meanErrors(rows, sys.seed)
		for m, e := range means[:fitted] {
			if e > 5 {
				t.Errorf("report %s, %s: mean absolute error %.1f %%", sys.seed, measureNames[m], e)
			}
		}
	}
	var excepted []string
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Seed]++
		if r.Excepted != "" {
			excepted = append(excepted, strings.Join(r.cells()[:3], " "))
		}
	}
	if diff := gocmp.Diff([]string{"001 * 79 2", "001 * 80 32"}, excepted); diff != "" {
		t.Errorf("excepted (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]int{"000": 23, "001": 13, "002": 2, "003": 1}, counts); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestFitGolden(t *testing.T) {
	rows := fitRows(t)
	var b strings.Builder
	must.Do(t, writeRows(&b, rows))
	path := filepath.Join("testdata", "fit.golden")
	if *update {
		must.Do(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := gocmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the fit has changed; run go test ./sim/step -update (-want +got):\n%s", diff)
	}
}

// The workloads have the sums stated in the reports.
func TestSeedWorkloads(t *testing.T) {
	rows := must.Get(seedRows())(t)
	for _, row := range rows {
		i := slices.IndexFunc(seedSystems, func(s seedSystem) bool { return s.seed == row.seed })
		arrivals := seedSystems[i].drive(row, rand.New(rand.NewPCG(1, 1)))
		prompt, output := 0, 0
		for _, a := range arrivals {
			prompt += a.Prompt
			output += a.Output
		}
		// The lengths of report 003 have a fitted shape, and their sums agree
		// within a thousandth.
		tolerance := 0
		if row.seed == "003" {
			tolerance = 1000
		}
		if len(arrivals) != row.requests || off(prompt, row.promptTokens)*1000 > tolerance*row.promptTokens/1000 ||
			off(output, row.outputTokens)*1000 > tolerance*row.outputTokens/1000 {
			t.Errorf("report %s, %d requests: %d prompt and %d output tokens, want %d and %d",
				row.seed, row.requests, prompt, output, row.promptTokens, row.outputTokens)
		}
	}
}

func off(a, b int) int { return max(a-b, b-a) }

// Measures are computed as in the reports: the end of sequence is an event but not
// a token.
func TestMeasure(t *testing.T) {
	ms := func(at ...int) []TokenEvent {
		events := make([]TokenEvent, len(at))
		for i, v := range at {
			events[i] = TokenEvent{At: milliseconds(float64(v)), Tokens: 1}
		}
		return events
	}
	got, err := measure([]Trace{
		{Events: ms(100, 200, 300), EOS: true},            // two tokens in 200 ms
		{Arrival: milliseconds(50), Events: ms(100, 500)}, // two tokens in 400 ms
	})
	must.Do(t, err)
	want := measures{75, 300, 200, 8, 0.5, 99.5, 394}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestP99(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 1; n < 2000; n += 1 + n/3 {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(rng.IntN(100))
		}
		sorted := slices.Sorted(slices.Values(x))
		at := 0.99 * float64(n-1)
		i := int(at)
		want := sorted[i] + (at-float64(i))*(sorted[min(i+1, n-1)]-sorted[i])
		if got := p99(x); got != want {
			t.Errorf("of %d values: %v, want %v", n, got, want)
		}
	}
}
