package metric_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
)

func TestPercentHasThreeDigits(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.00001: "less than 0.01 %", 0.0001: "0.01 %", 0.005: "0.5 %", 0.01236: "1.24 %", 0.0999: "9.99 %", 0.09999: "10 %",
		0.12345: "12.3 %", 0.55: "55 %", 0.99949: "99.9 %", 1: "100 %", 12.345: "1,235 %", -0.5: "-50 %",
	} {
		if got := metric.Percent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

func TestBeside(t *testing.T) {
	for v, want := range map[[2]float64]string{
		{200.4, 200}: "200.4", {200, 200}: "200", {201.4, 200}: "201", {200.0004, 200}: "200.0004", {9.996, 10}: "9.996",
		{150, 150.4}: "150", {200 + 1e-12, 200}: "200", {math.Inf(1), 1}: "inf", {1.2345, math.NaN()}: "1.23", {math.NaN(), 1}: metric.Unknown,
	} {
		if got := metric.Beside(v[0], v[1]); got != want {
			t.Errorf("%v beside %v: %q, want %q", v[0], v[1], got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.25: "0.25", 0.99949: "0.999", 0.9996: "1", 1.004: "1", 1.2345: "1.23", 9.994: "9.99", 9.996: "10", 30: "30", 31.249: "31.2",
		99.94: "99.9", 99.96: "100", 1224.6: "1,225", 9999.6: "10,000", 39506: "39,506", 1234567: "1,234,567", 1e9: "1e+09", 2.5e18: "2.5e+18",
		0.0125: "0.0125", 0.0004: "0.0004", 0.000012345: "1.23e-05", -0.25: "-0.25", -1224.6: "-1,225", -2e12: "-2e+12",
		math.Inf(1): "inf", math.Inf(-1): "-inf", math.MaxFloat64: "1.8e+308", math.SmallestNonzeroFloat64: "4.94e-324",
	} {
		if got := metric.Brief(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	if got := metric.Brief(math.NaN()); got != metric.Unknown {
		t.Error(got)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := metric.Integer(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// Every number becomes a short text that reads as the same number.
func FuzzBrief(f *testing.F) {
	for _, v := range []float64{0, 0.0005, 1, 99.95, 1e9, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		for _, one := range []struct {
			text  string
			value float64
		}{{metric.Brief(v), v}, {strings.TrimSuffix(metric.Percent(v), " %"), 100 * v}, {readDuration(metric.Duration(v)), v}} {
			if one.text == metric.Unknown && math.IsNaN(v) || strings.HasPrefix(one.text, "less than") && v > 0 && v < 0.0001 {
				continue
			}
			if !math.IsInf(one.value, 0) && math.Abs(one.value) > 1e300 || one.value != 0 && math.Abs(one.value) < 1e-300 { // three digits of these may be out of range
				continue
			}
			got, err := strconv.ParseFloat(strings.ReplaceAll(one.text, ",", ""), 64)
			near := got == one.value || math.Abs(got-one.value) <= 0.0051*math.Abs(one.value)
			if err != nil || !near {
				t.Errorf("%v reads as %q", one.value, one.text)
			}
		}
		if text := metric.Brief(v); len(text) > len("-100,000,000") {
			t.Errorf("%q is long", text)
		}
	})
}

// readDuration returns a time in milliseconds.
func readDuration(text string) string {
	if s, seconds := strings.CutSuffix(text, " s"); seconds {
		v, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err != nil {
			return text
		}
		return strconv.FormatFloat(1000*v, 'g', -1, 64)
	}
	return strings.TrimSuffix(text, " ms")
}
