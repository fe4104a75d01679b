package run_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"tacho/run"
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
		var l run.FloatLevels
		if err := l.UnmarshalText([]byte(text)); err != nil || !slices.Equal(l, want) {
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
		"8,...,2":           "cannot lead from 8 to 2",
		"1,...,inf":         "cannot lead",
		"2,4,...,9":         "neither a doubling",
		"1,2,...,100001":    "more than 10000 levels",
		"nan":               "is not a number",
		"0,...,2.5":         "neither a doubling",
		"1,3,...,6":         "neither a doubling",
		"1,2,2,...,5":       "neither a doubling",
		"-4,...,4000000000": "more than",
	} {
		var l run.FloatLevels
		if err := l.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, l, err, want)
		}
	}
	var ints run.IntLevels
	if err := ints.UnmarshalText([]byte("1.5")); err == nil {
		t.Errorf("1.5 prompts: %v", ints)
	}
}

func FuzzLevels(f *testing.F) {
	for _, s := range []string{"1,2,...,64", "inf", "1e300,...,1e308", "-1,...,5", "0.1,0.2,...,0.7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var l run.FloatLevels
		if l.UnmarshalText([]byte(s)) != nil {
			return
		}
		b, err := l.MarshalText()
		var again run.FloatLevels
		if err != nil || again.UnmarshalText(b) != nil || !slices.Equal(l, again) {
			t.Errorf("%q: %v was written as %q", s, l, b)
		}
	})
}

func TestSecondsAndRatios(t *testing.T) {
	for text, want := range map[string]run.Seconds{"30": 30, "0.5": 0.5, "500ms": 0.5, "2m": 120} {
		var s run.Seconds
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"soon", "-1", "1e30", "NaN"} {
		var s run.Seconds
		if s.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%s was taken for %v", text, s)
		}
	}
	var r run.Ratios
	if err := r.UnmarshalText([]byte(`{"input":0.1,"output":0.4}`)); err != nil || r != (run.Ratios{Input: 0.1, Output: 0.4}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.UnmarshalText([]byte(`{"input":0.1}`)); err == nil {
		t.Error("half a ratio was taken")
	}
}

func TestLevelsOfAPlan(t *testing.T) {
	p := run.DefaultPlan()
	p.NumPrompts = run.IntLevels{1, 2}
	p.MaxConcurrency = run.IntLevels{4, 8}
	var got []string
	for _, l := range p.Levels() {
		got = append(got, l.Name)
	}
	want := []string{
		"--max-concurrency 4 --num-prompts 1", "--max-concurrency 4 --num-prompts 2",
		"--max-concurrency 8 --num-prompts 1", "--max-concurrency 8 --num-prompts 2",
	}
	if !slices.Equal(got, want) || p.Varies() != "max-concurrency num-prompts" {
		t.Errorf("%q, varies %q", got, p.Varies())
	}
}

// Nothing in a plan that is written down is a secret.
func TestPlanKeepsSecrets(t *testing.T) {
	p := run.DefaultPlan()
	p.Header = []string{"Authorization=Bearer sk-very-secret", "X-Api-Key=k-also-secret"}
	p.BaseURL = []string{"https://user:pass-word-secret@example.test/v1"}
	p.ExtraBody = run.JSONObject{"api_key": "body-secret", "n": 1.0}
	public := p.Public(nil)
	b, err := json.Marshal(&public)
	if err != nil {
		t.Fatal(err)
	}
	if p.Header[0] != "Authorization=Bearer sk-very-secret" || p.ExtraBody["api_key"] != "body-secret" {
		t.Errorf("the plan itself lost its secrets: %q, %v", p.Header, p.ExtraBody)
	}
	if strings.Contains(string(b), "secret") {
		t.Errorf("a secret in %s", b)
	}
	if !strings.Contains(string(b), `"header":["Authorization=[redacted]","X-Api-Key=[redacted]"]`) || !strings.Contains(string(b), `"extra_body":{"api_key":"[redacted]","n":1}`) {
		t.Errorf("%s", b)
	}
}

func TestPlanIsChecked(t *testing.T) {
	start, end := 1.0, 2.0
	for want, change := range map[string]func(*run.Plan){
		"goes without --request-rate":       func(p *run.Plan) { p.RampUpStrategy, p.RequestRate = "linear", run.FloatLevels{3} },
		"needs --ramp-up-start-rps":         func(p *run.Plan) { p.RampUpStrategy = "linear" },
		"need --ramp-up-strategy":           func(p *run.Plan) { p.RampUpStartRPS = &start },
		"unknown ramp-up strategy":          func(p *run.Plan) { p.RampUpStrategy, p.RampUpStartRPS, p.RampUpEndRPS = "x", &start, &end },
		"at least 1 request":                func(p *run.Plan) { p.MaxConcurrency = run.IntLevels{0} },
		"--num-prompts 0":                   func(p *run.Plan) { p.NumPrompts = run.IntLevels{0} },
		"needs --request-rate":              func(p *run.Plan) { p.MaxSeconds = 3 },
		"--goodput":                         func(p *run.Plan) { p.Goodput = []string{"ttft"} },
		"--metric-percentiles":              func(p *run.Plan) { p.MetricPercentiles = "99,x" },
		`percentile metric "tttf"`:          func(p *run.Plan) { p.PercentileMetrics = "tttf" },
		"--lora-assignment":                 func(p *run.Plan) { p.LoraAssignment = "best" },
		"request rate 0 must be above 0":    func(p *run.Plan) { p.RequestRate = run.FloatLevels{0} },
		"burstiness 0 must be above 0":      func(p *run.Plan) { p.Burstiness = 0 },
		"goodput metric \"ttfb\": want one": func(p *run.Plan) { p.Goodput = []string{"ttfb:3"} },
	} {
		p := run.DefaultPlan()
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p := run.DefaultPlan()
	if err := p.Validate(); err != nil {
		t.Errorf("the default plan: %v", err)
	}
}

// A server may refuse the field, and then it can be left out.
func TestIgnoreEOSCanBeRefused(t *testing.T) {
	for text, want := range map[string]bool{"": true, "true": true, "false": false} {
		p := run.DefaultPlan()
		for _, o := range p.Options() {
			if o.Name == "ignore-eos" && text != "" {
				if err := o.Set(text); err != nil {
					t.Fatal(err)
				}
			}
		}
		work, _, err := p.Workload(t.Context(), 1, run.Env{}, run.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := work.Session(0)
		if err != nil || s.Turns[0].Request.IgnoreEOS != want {
			t.Errorf("--ignore-eos=%s: %v, %v, want %v", text, s.Turns[0].Request.IgnoreEOS, err, want)
		}
	}
}
