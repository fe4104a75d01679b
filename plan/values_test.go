package plan_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

func TestLevelLists(t *testing.T) {
	for text, want := range map[string][]float64{
		"7":              {7},
		"1,2,4":          {1, 2, 4},
		"1,2,...,16":     {1, 2, 4, 8, 16},
		"1,2,...,4096":   {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096},
		"1,...,8":        {1, 2, 4, 8},
		"1,2,...,6":      {1, 2, 3, 4, 5, 6},
		"1,2,3,...,8":    {1, 2, 3, 4, 5, 6, 7, 8},
		"10,20,...,50":   {10, 20, 30, 40, 50},
		"3,6,…,24":       {3, 6, 12, 24},
		"5,...,7":        {5, 6, 7},
		"0.5,1,...,2,10": {0.5, 1, 2, 10},
		"inf":            {math.Inf(1)},
		"1, 2 ,4":        {1, 2, 4},
	} {
		if l, err := rates(text); err != nil || !slices.Equal(l, want) {
			t.Errorf("%s: %v, %v; want %v", text, l, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                  "is not a number",
		"x":                 "is not a number",
		"1,,2":              "is not a number",
		"...,4":             "a number before them",
		"1,...":             "a number after them",
		"1,...,...,9":       "a number before them",
		"8,...,2":           "cannot go from 8 to 2",
		"1,...,inf":         "cannot go",
		"2,4,...,9":         "not a doubling",
		"1,2,...,100001":    "more than 10000 levels",
		"nan":               "is not a number",
		"0,...,2.5":         "not a doubling",
		"1,3,...,6":         "not a doubling",
		"1,2,2,...,5":       "not a doubling",
		"-4,...,4000000000": "more than",
	} {
		if l, err := rates(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, l, err, want)
		}
	}
	for _, text := range []string{"1.5", "1,2.5"} {
		if p := plan.Default(); p.Set("num-prompts", text) == nil {
			t.Errorf("%s prompts: %v", text, p.NumPrompts)
		}
	}
}

// rates returns the request rates of the levels of a plan.
func rates(text string) (out []float64, err error) {
	p := plan.Default()
	err = p.Set("request-rate", text)
	for _, l := range p.Levels() {
		out = append(out, l.Rate)
	}
	return out, err
}

func FuzzLevels(f *testing.F) {
	for _, s := range []string{"1,2,...,64", "inf", "1e300,...,1e308", "-1,...,5", "0.1,0.2,...,0.7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, again := plan.Default(), plan.Default()
		if p.Set("request-rate", s) != nil {
			return
		}
		b, err := json.Marshal(&p)
		if err != nil || again.Read(b, nil) != nil || !slices.EqualFunc(p.Levels(), again.Levels(), func(a, b plan.Level) bool { return a.Name == b.Name && a.Rate == b.Rate }) {
			t.Errorf("%q was written as %s", s, b)
		}
	})
}

func TestSecondsAndRatios(t *testing.T) {
	for text, want := range map[string]plan.Seconds{"30": 30, "0.5": 0.5, "500ms": 0.5, "2m": 120} {
		var s plan.Seconds
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"soon", "-1", "1e30", "NaN"} {
		var s plan.Seconds
		if s.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%s was taken for %v", text, s)
		}
	}
	var r workload.Ratios
	if err := r.UnmarshalText([]byte(`{"input":0.1,"output":0.4}`)); err != nil || r != (workload.Ratios{Input: 0.1, Output: 0.4}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.UnmarshalText([]byte(`{"input":0.1}`)); err == nil {
		t.Error("half a ratio was taken")
	}
}
