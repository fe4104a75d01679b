package metric_test

import (
	"math"
	"testing"

	"github.com/tacho-bench/tacho/metric"
)

func TestPercentHasThreeDigits(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.00001: "less than 0.01 %", 0.0001: "0.01 %", 0.005: "0.5 %", 0.01236: "1.24 %", 0.0999: "9.99 %", 0.09999: "10 %",
		0.12345: "12.3 %", 0.55: "55 %", 0.99949: "99.9 %", 1: "100 %", 12.345: "1235 %",
	} {
		if got := metric.Percent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// Every number has a short form. A load may be infinite.
func TestBrief(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.004: "0", 1.234: "1.23", 12.34: "12.3", 999.6: "1000", 9999: "9999", 10_000: "10k", 1.5e6: "1500k", 2e9: "2000kk",
		math.Inf(1): "inf", -1: "-1",
	} {
		if got := metric.Brief(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
