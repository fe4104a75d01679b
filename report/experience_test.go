package report_test

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// The text shows stalls and cost only if there are any. A metric beyond the reference's
// gets a section if it is requested.
func TestStallsAndCostAreShown(t *testing.T) {
	c := metric.DefaultConfig()
	c.StallMillis, c.GPUs, c.GPUPrice, c.Metrics = 11.5, 2, 3.6, []string{"ttft", "ttst"}
	a := metric.Accumulator{Stall: c.StallMillis}
	for _, r := range records(10) { // gaps of 10, 11, 12 and 13 ms, one fewer than tokens
		must.Do(t, a.Add(r))
	}
	var b, plain strings.Builder
	must.Do(t, text(&b, of(outcome.Level{Summary: a.Summary(c)})))
	for _, want := range []string{
		"Stalls of more than 11.5 ms:             6 in 4 of 8 requests, the longest 13.00 ms\n",
		"GPUs, price per GPU-hour:                2, 3.6\n", "Cost per Million Output Tokens:          ",
		"---------------Time to Second Token---------------\nMean Time to Second Token (ms):          10.00     \n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	must.Do(t, text(&plain, of(healthyStage())))
	for _, word := range []string{"Stalls", "Cost", "Second Token"} {
		if strings.Contains(plain.String(), word) {
			t.Errorf("%s without any:\n%s", word, plain.String())
		}
	}
}
