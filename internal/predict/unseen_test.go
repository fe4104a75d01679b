package predict

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/sim/step"
)

// Held-out errors are root mean squares over levels, also for the worst fold. Few
// levels give a wide allowance.
func TestHeldOutErrors(t *testing.T) {
	level := func(off float64) (e Comparison) {
		e.Measured[TTFT], e.Predicted[TTFT] = 100, 100*math.Exp(off)
		return e
	}
	p := step.Profile{HeldOutErrors: heldOutErrors([][]Comparison{{level(0.1), level(-0.1)}, {level(0.3), level(-0.3)}})}
	if e := p.HeldOutErrors; e.Levels != 4 || e.All["ttft"] != 0.224 || e.Worst["ttft"] != 0.3 {
		t.Errorf("%+v", e)
	}
	inside, outside := Allowance(&p, "ttft", false), Allowance(&p, "ttft", true)
	if math.Abs(inside/0.224-2.132) > 0.01 || math.Abs(outside/0.3-2.132) > 0.01 { // Student's t, four degrees of freedom
		t.Errorf("inside %.3f, outside %.3f", inside, outside)
	}
	if got := Allowance(&p, "tpot", false); got != inside {
		t.Errorf("a quantity that was not held out: %.3f", got)
	}
	if got := Allowance(&step.Profile{}, "ttft", true); got != 0 {
		t.Errorf("a profile without held-out errors: %.3f", got)
	}
}

// A load is outside if it is heavier, longer, shorter or cached, or if the engine
// was changed.
func TestOutside(t *testing.T) {
	p := step.Profile{MaxSequences: 256, FittedTo: step.FittedTo{InFlight: 64, InputTokens: [2]float64{100, 600}, OutputTokens: [2]float64{60, 200}, MaxSequences: 256}}
	like := func(flying, input, output, cached int) *metric.Summary {
		s := &metric.Summary{Peaks: &metric.Peaks{InFlight: flying}}
		s.Completed = 10
		s.Tokens.Input, s.Tokens.Output, s.Tokens.Cached = 10*input, 10*output, cached
		return s
	}
	for _, tt := range []struct {
		s        *metric.Summary
		replicas int
		want     string
	}{
		{like(64, 512, 128, 0), 1, ""},
		{like(128, 512, 128, 0), 1, "more than 64 requests in flight"},
		{like(128, 512, 128, 0), 2, ""},
		{like(1, 2000, 10, 0), 1, "prompts of 2000 tokens (100 to 600), answers of 10 tokens (60 to 200)"},
		{like(1, 512, 128, 500), 1, "prompts found in the prefix cache"},
	} {
		if got := strings.Join(Outside(&p, tt.s, tt.replicas), ", "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	p.MaxSequences = 16
	if got := Outside(&p, like(1, 512, 128, 0), 1); !slices.Equal(got, []string{"max_sequences 16 (256)"}) {
		t.Error(got)
	}
}
