package report

import (
	"math"
	"strings"
	"testing"
)

func TestPythonFloat(t *testing.T) {
	for want, v := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "12.0": 12, "0.1": 0.1, "0.0001": 0.0001, "1e-05": 0.00001, "1.5e-07": 1.5e-7,
		"1234567.25": 1234567.25, "1000000000000000.0": 1e15, "9999999999999998.0": 9999999999999998, "1e+16": 1e16,
		"1.2345e+22": 1.2345e22, "1e+100": 1e100, "5e-324": 5e-324, "1.7976931348623157e+308": math.MaxFloat64,
		"0.30000000000000004": 0.1 + 0.2, "-2.5": -2.5, "inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN(),
	} {
		if want == "0.30000000000000004" {
			tenth := 0.1 // a constant sum would be exact
			v = tenth + 0.2
		}
		if got := pythonFloat(v); got != want {
			t.Errorf("pythonFloat(%g) = %s, want %s", v, got, want)
		}
	}
	for want, v := range map[string]float64{"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN(), "1.0": 1} {
		if got := pythonJSONFloat(v); got != want {
			t.Errorf("pythonJSONFloat(%g) = %s, want %s", v, got, want)
		}
	}
}

func TestPythonFixed(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0.125, "0.12"},
		{0.375, "0.38"}, // an exact binary half rounds to even
		{2.675, "2.67"}, // 2.675 is slightly below the half in binary
		{-0.001, "-0.00"},
		{1e6, "1000000.00"},
		{math.NaN(), "nan"},
		{math.Inf(-1), "-inf"},
	} {
		if got := pythonFixed(c.v); got != c.want {
			t.Errorf("pythonFixed(%v) = %s, want %s", c.v, got, c.want)
		}
	}
}

func TestPercentileWord(t *testing.T) {
	for want, p := range map[string]float64{"99": 99, "99.9": 99.9, "0": 0, "0.5": 0.5, "1e-05": 0.00001} {
		if got := percentileWord(p); got != want {
			t.Errorf("percentileWord(%v) = %s, want %s", p, got, want)
		}
	}
}

func TestPythonString(t *testing.T) {
	got := string(appendPythonString(nil, "a\"\\/\b\f\n\r\t\x00\x1f\x7f<é€😀\xff"))
	want := strings.Join([]string{
		`"a`, `\"`, `\\`, `/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0000`, `\u001f`, `\u007f`, `<`, `\u00e9`, `\u20ac`, `\ud83d\ude00`, `\ufffd"`,
	}, "")
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
