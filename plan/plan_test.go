package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

func TestLevelsOfAPlan(t *testing.T) {
	p := plan.Default()
	set(t, &p, "num-prompts=1,2", "max-concurrency=4,8")
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

// A public plan contains no secrets, and the original plan keeps its secrets.
func TestPlanKeepsSecrets(t *testing.T) {
	p := plan.Default()
	p.Header = []string{"Authorization=Bearer sk-very-secret", "X-Api-Key=k-also-secret"}
	p.BaseURL = []string{"https://user:pass-word-secret@example.test/v1"}
	p.ExtraBody = plan.JSONObject{"api_key": "body-secret", "n": 1.0}
	public := p.Public(nil)
	b := must.Get(json.Marshal(&public))(t)
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
	for want, change := range map[string]func(*plan.Plan){
		"cannot be combined with --request-rate": func(p *plan.Plan) { p.RampUpStrategy, p.RequestRate = "linear", 3 },
		"needs --ramp-up-start-rps":              func(p *plan.Plan) { p.RampUpStrategy = "linear" },
		"need --ramp-up-strategy":                func(p *plan.Plan) { p.RampUpStartRPS = &start },
		"--ramp-up-strategy \"x\": write":        func(p *plan.Plan) { p.RampUpStrategy, p.RampUpStartRPS, p.RampUpEndRPS = "x", &start, &end },
		"--max-concurrency 0: want at least 1":   func(p *plan.Plan) { set(t, p, "max-concurrency=0") },
		"--num-warmups -3: want 0":               func(p *plan.Plan) { set(t, p, "num-warmups=-3") },
		"--random-prefix-len -2: want 0":         func(p *plan.Plan) { set(t, p, "random-prefix-len=-2") },
		"--repeat 0: want at least 1":            func(p *plan.Plan) { set(t, p, "repeat=0") },
		"--num-prompts 0":                        func(p *plan.Plan) { p.NumPrompts = 0 },
		"--replicas 0: write at least 1":         func(p *plan.Plan) { set(t, p, "replicas=0") },
		"--draws -1: want 0 or more":             func(p *plan.Plan) { p.Draws = -1 },
		"--draws -1":                             func(p *plan.Plan) { p.Draws = -1 },
		"needs --request-rate":                   func(p *plan.Plan) { p.MaxSeconds = 3 },
		"--goodput":                              func(p *plan.Plan) { p.Goodput = []string{"ttft"} },
		"--metric-percentiles":                   func(p *plan.Plan) { p.MetricPercentiles = "99,x" },
		`percentile metric "tttf"`:               func(p *plan.Plan) { p.PercentileMetrics = "tttf" },
		"--lora-assignment":                      func(p *plan.Plan) { p.LoraAssignment = "best" },
		"request rate 0 must be above 0":         func(p *plan.Plan) { p.RequestRate = 0 },
		"burstiness 0 must be above 0":           func(p *plan.Plan) { p.Burstiness = 0 },
		"unknown goodput metric \"ttfb\"":        func(p *plan.Plan) { p.Goodput = []string{"ttfb:3"} },
	} {
		p := plan.Default()
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p := plan.Default()
	if err := p.Validate(); err != nil {
		t.Errorf("the default plan: %v", err)
	}
}
