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
