package predict

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// poisson yields Poisson arrivals.
func poisson(rate float64, seed uint64) iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		rng := rand.New(rand.NewPCG(seed, 7))
		at := 0.0
		for i := uint64(0); ; i++ {
			if !yield(i, time.Duration(at*1e9)) {
				return
			}
			at += rng.ExpFloat64() / rate
		}
	}
}

// ownRuns are runs of a known engine: bursts, closed loops, open loops, long
// prompts.
func ownRuns(t *testing.T, p step.Profile) []Set {
	t.Helper()
	var burst, closed, open, long Set
	burst.Name, closed.Name, open.Name, long.Name = "burst", "closed", "open", "long"
	for n := 1; n <= 512; n *= 2 {
		burst.Levels = append(burst.Levels, seen(t, fmt.Sprint("burst ", n), p, Stage{Arrivals: asap, Source: talks{sessions: n, turns: 1, prompt: 80, answer: 150}}))
	}
	for _, limit := range []int{1, 8, 32, 64, 128, 256} {
		closed.Levels = append(closed.Levels, seen(t, fmt.Sprint("closed ", limit), p, Stage{Arrivals: asap, Limit: limit, Source: talks{sessions: 3*limit + 10, turns: 1, prompt: 512, answer: 128}}))
	}
	for i, rate := range []float64{5, 20, 40, 60} {
		open.Levels = append(open.Levels, seen(t, fmt.Sprint("open ", rate), p, Stage{Arrivals: poisson(rate, uint64(i)), Source: talks{sessions: int(13 * rate), turns: 1, prompt: 512, answer: 128}}))
	}
	for n := 1; n <= 32; n *= 2 {
		long.Levels = append(long.Levels, seen(t, fmt.Sprint("long ", n), p, Stage{Arrivals: asap, Source: talks{sessions: n, turns: 1, prompt: 8192, answer: 64}}))
	}
	return []Set{burst, closed, open, long}
}

// truthOf is the value of a fitted parameter in the engine that generated the data,
// whose lines may have other knots.
func truthOf(p *step.Profile, name string) float64 {
	var tokens int
	switch {
	case scan(name, "cost.step at %d", &tokens):
		return on(p.Cost.Step, tokens)
	case scan(name, "cost.decode at %d", &tokens):
		return on(p.Cost.Decode, tokens)
	}
	for _, k := range uncertain(*p) {
		if k.name == name {
			return *k.at(p)
		}
	}
	return 0
}

func scan(s, form string, n *int) bool {
	_, err := fmt.Sscanf(s, form, n)
	return err == nil
}

// changed is a known engine on another host and another GPU.
func changed(t *testing.T) step.Profile {
	t.Helper()
	p := onMachine(t, 0.8)
	for _, line := range [][]step.Knot{p.Cost.Step, p.Cost.Decode} {
		for i := range line {
			line[i].Ms *= 1.1
		}
	}
	p.Cost.DecodeNsPerContextToken *= 1.1
	p.Cost.MixedUsPerSequence *= 1.1
	p.Cost.PrefillNsPerTokenAndContext *= 1.1
	return p
}

// covered is the fraction of numbers whose true value is within 1.96 standard
// errors.
func covered(t *testing.T, p *step.Profile, fit *Fit) float64 {
	t.Helper()
	var in, squares mean
	for _, k := range fit.Parameters {
		truth := truthOf(p, k.Name)
		if truth == 0 {
			continue
		}
		z := math.Log(k.Value/truth) / k.Error
		t.Logf("%-40s %8.4g, true %8.4g (%+.1f %%), standard error %.2g %%, z %+.1f", k.Name, k.Value, truth, 100*(k.Value/truth-1), 100*k.Error, z)
		squares.add(z * z)
		if in.n++; math.Abs(z) < 1.96 {
			in.sum++
		}
	}
	t.Logf("%.0f of %d within 1.96 standard errors, root mean square of z %.2f", in.sum, in.n, math.Sqrt(squares.value()))
	return in.value()
}

// Standard errors cover the truth if the data comes from the model itself, even for
// numbers that the levels do not identify. All of those are listed.
func TestStandardErrorsCoverTheTruth(t *testing.T) {
	p := changed(t)
	levels := []*MeasuredLevel{
		seen(t, "burst", p, Stage{Arrivals: asap, Source: talks{sessions: 16, turns: 1, prompt: 80, answer: 40}}),
		seen(t, "closed 1", p, Stage{Arrivals: asap, Limit: 1, Source: talks{sessions: 6, turns: 1, prompt: 512, answer: 30}}),
		seen(t, "closed 16", p, Stage{Arrivals: asap, Limit: 16, Source: talks{sessions: 64, turns: 1, prompt: 512, answer: 30}}),
		seen(t, "open", p, Stage{Arrivals: poisson(20, 1), Source: talks{sessions: 60, turns: 1, prompt: 512, answer: 40}}),
		seen(t, "long", p, Stage{Arrivals: asap, Source: talks{sessions: 4, turns: 1, prompt: 8192, answer: 20}}),
	}
	start, sigmas := readOff(generic(), levels)
	start.KV.PrefixCache = false
	fit := must.Get(fitTo(t.Context(), start, levels, Options{Rounds: 4, StandardErrors: sigmas}))(t)
	if share := covered(t, &p, fit); share < 0.95 {
		t.Errorf("%.0f %% of the numbers are within 1.96 standard errors", 100*share)
	}
	listed := map[string]bool{}
	for _, u := range (&Learned{Fit: *fit}).unidentified(t.Context(), levels) {
		listed[u.Name] = true
	}
	for _, name := range append([]string{"max_sequences", "api.turns", "api.piece_tokens", "host.graph_tokens", "output"}, heldFixed...) {
		if !listed[name] {
			t.Errorf("%s is not identified, and not listed", name)
		}
	}
	for _, k := range fit.Parameters {
		if !k.Identified && k.Error < 0.1 {
			t.Errorf("%s is not identified, and has a standard error of %.0f %%", k.Name, 100*k.Error)
		}
	}
}

// The same with four whole runs and an unknown structure: make test-ranges.
func TestStandardErrorsOfWholeRuns(t *testing.T) {
	if os.Getenv("FIT_OWN") == "" {
		t.Skip("make test-ranges")
	}
	p := changed(t)
	l := must.Get(Learn(t.Context(), nil, ownRuns(t, p), Options{NoHoldOut: true, NoAdvice: true}))(t)
	if share := covered(t, &p, &l.Fit); share < 0.9 {
		t.Errorf("%.0f %% of the numbers are within 1.96 standard errors", 100*share)
	}
}
