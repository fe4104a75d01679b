package predict

import (
	"fmt"
	"iter"
	"math"
	"testing"
	"time"

	"tacho"
	"tacho/metric"
	"tacho/outcome"
	"tacho/sim/step"
)

// seen is a level as it would have been measured on an engine.
func seen(t *testing.T, name string, p step.Profile, s Stage) *Seen {
	t.Helper()
	server, err := step.NewServer(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = server
	var all kept
	if err := Run(t.Context(), s, &all); err != nil {
		t.Fatal(err)
	}
	level := outcome.Level{
		Setting: outcome.Setting{Concurrency: s.Limit, Prompts: len(all)}, Summary: metric.Summary{},
		Records: func() iter.Seq2[*tacho.Record, error] {
			return func(yield func(*tacho.Record, error) bool) {
				for i := range all {
					if !yield(&all[i], nil) {
						return
					}
				}
			}
		},
	}
	out, err := See(name, &level)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A fit to what a known engine did finds its costs again, from a start that is
// half as much too high, and then explains a load that it had not seen.
func TestFitFindsAKnownEngine(t *testing.T) {
	p := profile(t)
	p.KV.PrefixCache = false
	var levels []*Seen
	for _, limit := range []int{1, 8, 32} {
		levels = append(levels, seen(t, fmt.Sprint("closed ", limit), p, Stage{Arrivals: asap, Limit: limit, Source: talks{sessions: 8 * limit, turns: 1, prompt: 600, answer: 60}}))
	}
	start := p
	ks := knobs(start)
	at := read(&start, ks)
	for i := range at {
		at[i] += math.Log(1.5)
	}
	fit, err := FitTo(t.Context(), turned(start, ks, at), levels, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range fit.Knobs {
		if truth := *ks[knobNamed(t, ks, k.Name)].at(&p); k.Told && k.Error < 0.05 && math.Abs(k.Value/truth-1) > 0.1 {
			t.Errorf("%s: %.4g (+- %.0f %%), it is %.4g", k.Name, k.Value, 100*k.Error, truth)
		}
	}
	open := seen(t, "open", p, Stage{Arrivals: every(60 * time.Millisecond), Source: talks{sessions: 200, turns: 1, prompt: 600, answer: 60}})
	got, err := Explain(t.Context(), fit.Profile, []*Seen{open})
	if err != nil {
		t.Fatal(err)
	}
	off := got[0].Predicted.Off(got[0].Measured)
	for _, f := range []int{TTFT, TPOT, E2EL} {
		if math.Abs(off[f]) > 0.05 {
			t.Errorf("a load that was not measured: %s is %.1f %% off", FigureNames[f], 100*off[f])
		}
	}
}

// An engine that nobody knows anything of is found from what it did: its policy,
// its limits, what a step costs, and what it makes of a load it was not measured at.
func TestLearnFindsAnEngine(t *testing.T) {
	p := profile(t)
	p.KV.PrefixCache, p.MaxSequences = false, 24
	set := Set{Name: "known"}
	for _, limit := range []int{1, 8, 16, 64} {
		s := seen(t, fmt.Sprint("closed ", limit), p, Stage{Arrivals: asap, Limit: limit, Source: talks{sessions: 6*limit + 10, turns: 1, prompt: 600, answer: 80}})
		set.Levels = append(set.Levels, s)
	}
	set.Levels = append(set.Levels, seen(t, "open", p, Stage{Arrivals: every(90 * time.Millisecond), Source: talks{sessions: 100, turns: 1, prompt: 900, answer: 60}}))
	l, err := Learn(t.Context(), nil, []Set{set}, Options{NoHoldOut: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.Profile.Policy != p.Policy || l.Profile.MaxSequences != p.MaxSequences {
		t.Errorf("found %s, it is %s", Structure(&l.Profile), Structure(&p))
	}
	other := seen(t, "other", p, Stage{Arrivals: every(50 * time.Millisecond), Source: talks{sessions: 150, turns: 1, prompt: 400, answer: 100}})
	got, err := Explain(t.Context(), l.Profile, []*Seen{other})
	if err != nil {
		t.Fatal(err)
	}
	off := got[0].Predicted.Off(got[0].Measured)
	for _, f := range []int{TTFT, TPOT, E2EL, Throughput} {
		if math.Abs(off[f]) > 0.03 {
			t.Errorf("a load that was not measured: %s is %.1f %% off", FigureNames[f], 100*off[f])
		}
	}
	truth, found := p.Cost, l.Profile.Cost
	for _, c := range []struct {
		name         string
		truth, found step.Knot
	}{{"a decode", truth.Step[0], found.Decode[0]}, {"a full step", truth.Step[len(truth.Step)-1], found.Step[1]}} {
		if c.truth.Tokens != c.found.Tokens || math.Abs(c.found.Ms/c.truth.Ms-1) > 0.01 {
			t.Errorf("%s takes %v, found %v", c.name, c.truth, c.found)
		}
	}
}

func knobNamed(t *testing.T, ks []knob, name string) int {
	t.Helper()
	for i := range ks {
		if ks[i].name == name {
			return i
		}
	}
	t.Fatalf("no knob %s", name)
	return 0
}
