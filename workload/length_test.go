package workload_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

func length(t *testing.T, text string) workload.Length {
	t.Helper()
	var l workload.Length
	must.Do(t, l.UnmarshalText([]byte(text)))
	return l
}

// TestLengthsHaveTheirMeans checks the mean of each distribution within five standard
// errors.
func TestLengthsHaveTheirMeans(t *testing.T) {
	file := write(t, "h.csv", "10,1\n100-199,3\n")
	for _, c := range []struct {
		text      string
		mean, sd  float64
		low, high int
	}{
		{"77", 77, 0, 77, 77},
		{"D(77)", 77, 0, 77, 77},
		{"uniform(10,20)", 15, math.Sqrt(120.0 / 12), 10, 20},
		{"U:10,20", 15, math.Sqrt(120.0 / 12), 10, 20},
		{"normal(1000,200)", 1000, 200, 0, 2500},
		{"lognormal(600,0.5)", 600 * math.Exp(0.125), 600 * math.Exp(0.125) * math.Sqrt(math.Exp(0.25)-1), 0, 20_000},
		{"gamma(2,800)", 800, 800 / math.Sqrt2, 0, 20_000},
		{"gamma(0.5,800)", 800, 800 * math.Sqrt2, 0, 30_000},
		{"zipf(1,4)", 4 / (1 + 1.0/2 + 1.0/3 + 1.0/4), 1.2, 1, 4},
		{"file(" + file + ")", 0.25*10 + 0.75*149.5, 66, 10, 199},
		{"normal(1000,2000)[900,1100]", 1000, 100, 900, 1100},
	} {
		l := length(t, c.text)
		r := rand.New(rand.NewPCG(1, 2))
		sum, n := 0.0, 20_000
		for range n {
			v := l.Draw(r, 0)
			if v < c.low || v > c.high {
				t.Fatalf("%s drew %d", c.text, v)
			}
			sum += float64(v)
		}
		if got := sum / float64(n); math.Abs(got-c.mean) > 5*c.sd/math.Sqrt(float64(n))+1e-9 {
			t.Errorf("%s: mean %.2f, want %.2f", c.text, got, c.mean)
		}
		text := must.Get(l.MarshalText())(t)
		again := length(t, string(text))
		if a, b := again.Draw(rand.New(rand.NewPCG(3, 4)), 0), l.Draw(rand.New(rand.NewPCG(3, 4)), 0); a != b {
			t.Errorf("%s is written as %s, which draws %d and not %d", c.text, text, a, b)
		}
	}
}

func TestBadLengths(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "write a number",
		"ten":              "write a number",
		"normal(1)":        "normal takes 2 numbers",
		"normal(1,x)":      "is not a number",
		"normal(-1,2)":     "is not a number from 0 to",
		"unifrom(1,2)":     "unknown distribution",
		"uniform(5,2)":     "the smaller first",
		"gamma(0,5)":       "above 0",
		"zipf(1,9999999)":  "from 1 to",
		"normal(1,2)[5,2]": "write [LOW,HIGH]",
		"file(/none)":      "no such file",
		"99999999999":      "must be at most 16777216",
		"file(" + write(t, "x.csv", "1,2,3\n") + ")": "x.csv:1:",
		"file(" + write(t, "y.csv", "5,0\n") + ")":   "no weight",
	} {
		var l workload.Length
		if err := l.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestScenarios(t *testing.T) {
	for text, want := range map[string][4]float64{ // mean in, mean out, tolerance of each
		"D(100,50)":                    {100, 50, 0, 0},
		"N(480,24)/(300,15)":           {480, 300, 2, 2},
		"U(50,100)/(200,250)":          {75, 225, 2, 2},
		"256|8,128|4:25;1024,64:75":    {832, 80, 15, 2},
		"uniform(1,3)/lognormal(50,0)": {2, 50, 0.1, 0},
	} {
		var s workload.Scenario
		must.Do(t, s.UnmarshalText([]byte(text)))
		r := rand.New(rand.NewPCG(1, 2))
		var in, out float64
		for range 10_000 {
			a, b := s.Draw(r)
			in, out = in+float64(a)/10_000, out+float64(b)/10_000
		}
		if math.Abs(in-want[0]) > want[2]+1e-6 || math.Abs(out-want[1]) > want[3]+1e-6 {
			t.Errorf("%s: %.2f in, %.2f out, want %v", text, in, out, want)
		}
	}
	for _, text := range []string{"D(1)", "X(1,2)/(3,4)", "1,2:0", "1", "N(1,2)", "D(a,b)", ";"} {
		var s workload.Scenario
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a scenario", text)
		}
	}
}

func FuzzLength(f *testing.F) {
	for _, s := range []string{"7", "normal(1,2)[3,4]", "zipf(1,9)", "U:1,2", "file(x)", "gamma(0.1,5)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.HasPrefix(strings.ToLower(s), "file") {
			t.Skip("reads files")
		}
		var l workload.Length
		if l.UnmarshalText([]byte(s)) == nil {
			if n := l.Draw(rand.New(rand.NewPCG(1, 2)), 1); n < 1 {
				t.Errorf("%q drew %d", s, n)
			}
		}
		var sc workload.Scenario
		if sc.UnmarshalText([]byte(s)) == nil && sc.Given() {
			sc.Draw(rand.New(rand.NewPCG(1, 2)))
		}
	})
}
