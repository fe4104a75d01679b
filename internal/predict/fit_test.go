package predict

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/sim/step"
)

// seen returns a level as measured on an engine.
func seen(t *testing.T, name string, p step.Profile, s Stage) *MeasuredLevel {
	t.Helper()
	server := must.Get(step.NewServer(p, 1))(t)
	s.Server = server
	var all kept
	must.Do(t, Run(t.Context(), s, &all))
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
	return must.Get(readLevel(name, &level))(t)
}

// A fit to the output of a known engine finds its costs from a start that is 50 %
// too high, and then predicts a load excluded from the fit.
func TestFitFindsKnownEngine(t *testing.T) {
	p := profile(t)
	p.KV.PrefixCache = false
	var levels []*MeasuredLevel
	for _, limit := range []int{1, 8, 32} {
		levels = append(levels, seen(t, fmt.Sprint("closed ", limit), p, Stage{Arrivals: asap, Limit: limit, Source: talks{sessions: 8 * limit, turns: 1, prompt: 600, answer: 60}}))
	}
	start := p
	ks := parameters(start)
	at := read(&start, ks)
	for i := range at {
		at[i] += math.Log(1.5)
	}
	fit := must.Get(fitTo(t.Context(), withValues(start, ks, at), levels, Options{}))(t)
	for _, k := range fit.Parameters {
		if truth := *ks[parameterNamed(t, ks, k.Name)].at(&p); k.Identified && k.Error < 0.05 && math.Abs(k.Value/truth-1) > 0.1 {
			t.Errorf("%s: %.4g (+- %.0f %%), it is %.4g", k.Name, k.Value, 100*k.Error, truth)
		}
	}
	if len(fit.Profile.Errors) != len(fit.Parameters) || len(fit.Profile.Correlations) == 0 {
		t.Errorf("%d errors and %d correlations of %d numbers", len(fit.Profile.Errors), len(fit.Profile.Correlations), len(fit.Parameters))
	}
	if _, err := fit.Profile.Write(nil); err != nil {
		t.Errorf("write: %v", err)
	}
	open := seen(t, "open", p, Stage{Arrivals: every(60 * time.Millisecond), Source: talks{sessions: 200, turns: 1, prompt: 600, answer: 60}})
	got := must.Get(Compare(t.Context(), fit.Profile, []*MeasuredLevel{open}))(t)
	off := got[0].Predicted.RelativeError(got[0].Measured)
	for _, f := range []int{TTFT, TPOT, E2EL} {
		if math.Abs(off[f]) > 0.05 {
			t.Errorf("a load that was not measured: %s is %.1f %% off", FigureNames[f], 100*off[f])
		}
	}
}

// Steps full of prompts identify the cost of a prompt token, and prompts of several
// lengths the cost of a pair of tokens.
func TestTrainsIdentifyPromptCost(t *testing.T) {
	p := profile(t)
	p.KV.PrefixCache = false
	var levels []*MeasuredLevel
	for _, l := range []struct{ limit, prompt int }{{64, 512}, {96, 512}, {128, 512}, {12, 8000}, {16, 8000}} {
		levels = append(levels, seen(t, fmt.Sprint("closed ", l.limit), p, Stage{Arrivals: asap, Limit: l.limit, Source: talks{sessions: 2 * l.limit, turns: 1, prompt: l.prompt, answer: 40}}))
	}
	q, sigmas := readOff(plain(), levels)
	if sigmas["cost.step at 8192"] == 0 {
		t.Fatal("no step was full of prompts")
	}
	last := len(p.Cost.Step) - 1
	if got, want := q.Cost.Step[2].Ms, p.Cost.Step[last].Ms; math.Abs(got/want-1) > 0.02 {
		t.Errorf("a full step takes %.1f ms, read off %.1f", want, got)
	}
	if got, want := q.Cost.PrefillNsPerTokenAndContext, p.Cost.PrefillNsPerTokenAndContext; math.Abs(got/want-1) > 0.1 {
		t.Errorf("a pair takes %.2f ns, read off %.2f", want, got)
	}
	q, sigmas = readOff(plain(), levels[:3]) // prompts of one length
	if sigmas["cost.step at 8192"] == 0 {
		levels = append(levels[:3], levels[:3]...)
		q, sigmas = readOff(plain(), levels)
	}
	if q.Cost.PrefillNsPerTokenAndContext != plain().Cost.PrefillNsPerTokenAndContext || sigmas["cost.prefill_ns_per_token_and_context"] != unidentifiedSigma {
		t.Errorf("prompts of one length identify the cost of pairs: %.2f ns", q.Cost.PrefillNsPerTokenAndContext)
	}
}

// A report is excluded and named if its requests waited longer than the requests of
// a larger burst; a report with other prompts is not.
func TestReportsWithAStallAreExcluded(t *testing.T) {
	level := func(name string, n, prompt int, ttft float64) *MeasuredLevel {
		s := &MeasuredLevel{Name: name, report: true, distinct: 1, sent: make([]sent, n)}
		for i := range s.sent {
			s.sent[i].prompt = prompt
		}
		s.Measured[TTFT] = ttft
		return s
	}
	set := Set{Levels: []*MeasuredLevel{level("one", 1, 80, 120), level("stalled", 2, 80, 860), level("four", 4, 80, 240), level("long", 1, 9000, 12_000), level("many", 64, 80, 2000)}}
	markStalled(set.Levels)
	var l Learned
	kept := l.excludeStalled([]Set{set})
	if len(l.Excluded) != 1 || !strings.HasPrefix(l.Excluded[0], "stalled: requests waited for 0.9 s") || len(kept[0].Levels) != 4 {
		t.Errorf("left out %q, kept %d", l.Excluded, len(kept[0].Levels))
	}
}

func parameterNamed(t *testing.T, ks []parameter, name string) int {
	t.Helper()
	for i := range ks {
		if ks[i].name == name {
			return i
		}
	}
	t.Fatalf("no parameter %s", name)
	return 0
}
