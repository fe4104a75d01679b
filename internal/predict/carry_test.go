package predict

import (
	"math"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// onMachine is a known engine whose host times are multiplied by factor.
func onMachine(t *testing.T, factor float64) step.Profile {
	t.Helper()
	p := must.Get(step.Load("vllm-8b-h200"))(t)
	p.Host.Noise, p.KV.PrefixCache = 0, false
	for _, ms := range hostTimes(&p) {
		*ms *= factor
	}
	return p
}

// A short run on another machine identifies the factor of its host. Loads that were
// not measured there are then predicted correctly, unlike with the old model.
func TestStartIsCarriedToAnotherHost(t *testing.T) {
	const factor = 0.75
	old, truth := onMachine(t, 1), onMachine(t, factor)
	short := seen(t, "open", truth, Stage{Arrivals: every(50 * time.Millisecond), Source: talks{sessions: 80, turns: 1, prompt: 512, answer: 40}})
	l := must.Get(Learn(t.Context(), &old, []Set{{Name: "open", Levels: []*MeasuredLevel{short}}}, Options{Rounds: 3, NoAdvice: true}))(t)
	others := []*MeasuredLevel{
		seen(t, "closed", truth, Stage{Arrivals: asap, Limit: 24, Source: talks{sessions: 96, turns: 1, prompt: 512, answer: 40}}),
		seen(t, "short prompts", truth, Stage{Arrivals: every(20 * time.Millisecond), Source: talks{sessions: 150, turns: 1, prompt: 100, answer: 60}}),
		seen(t, "burst", truth, Stage{Arrivals: asap, Source: talks{sessions: 48, turns: 1, prompt: 200, answer: 30}}),
	}
	before := must.Get(Compare(t.Context(), old, others))(t)
	after := must.Get(Compare(t.Context(), l.Profile, others))(t)
	for _, f := range []int{TTFT, TPOT, Throughput} {
		b, _ := MeanError(before, f)
		a, _ := MeanError(after, f)
		t.Logf("%s: %.1f %% off with the model of the old machine, %.1f %% with the new one", FigureNames[f], 100*b, 100*a)
		if a > 0.04 {
			t.Errorf("%s of loads that were not measured is %.1f %% off", FigureNames[f], 100*a)
		}
	}
	if b, _ := MeanError(before, TTFT); b < 0.1 {
		t.Errorf("the old model is only %.1f %% off: this test shows nothing", 100*b)
	}
	was, is := hostTimes(&old), hostTimes(&l.Profile)
	sum, n := 0.0, 0.0
	for i := range was {
		if *was[i] > 0 {
			sum += math.Log(*is[i] / *was[i])
			n++
		}
	}
	if got := math.Exp(sum / n); math.Abs(got/factor-1) > 0.08 {
		t.Errorf("times of the host are %.2f of what they were, want %.2f", got, factor)
	}
}
