package outcome_test

import (
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

func TestSimulated(t *testing.T) {
	engine := []string{outcome.SimulatedEngine + "vllm-8b-h100"}
	predicted := outcome.Level{Summary: metric.Summary{Config: metric.Config{Predicted: true}}}
	listed := outcome.Level{Setting: outcome.Setting{Coordinates: outcome.Coordinates{{Name: "sim", Value: "vllm-8b-h100"}}}}
	remote := outcome.Level{Summary: metric.Summary{Config: metric.Config{Simulated: true}}}
	for _, c := range []struct {
		name string
		run  outcome.Run
		want bool
	}{
		{"a server", outcome.Run{About: outcome.About{URLs: []string{"http://127.0.0.1:8000"}}}, false},
		{"a simulated engine", outcome.Run{About: outcome.About{URLs: engine}}, true},
		{"a server of tacho sim", outcome.Run{About: outcome.About{URLs: []string{"http://10.0.0.1:8000"}}, Levels: []outcome.Level{remote}}, true},
		{"a list of simulated engines", outcome.Run{Levels: []outcome.Level{listed}}, true},
		{"a prediction", outcome.Run{About: outcome.About{URLs: engine}, Levels: []outcome.Level{predicted}}, false},
	} {
		if got := c.run.Simulated(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestInvalid(t *testing.T) {
	var run outcome.Run
	for _, v := range []metric.Severity{metric.Valid, metric.Invalid, metric.Degraded, metric.Invalid} {
		run.Levels = append(run.Levels, outcome.Level{Summary: metric.Summary{Verdict: metric.Verdict{Severity: v}}})
	}
	if n := run.Invalid(); n != 2 {
		t.Errorf("%d levels are INVALID", n)
	}
}
