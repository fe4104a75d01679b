package predict

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// alike is a source whose prompts share their beginning.
type alike struct{ talks }

func (s alike) Session(i uint64) (tacho.Session, error) {
	out, err := s.talks.Session(i)
	for _, turn := range out.Turns {
		for k := range turn.Request.Input.IDs[:s.prompt/2] {
			turn.Request.Input.IDs[k] = int32(k)
		}
	}
	return out, err
}

// engines are changes to a known engine, which a fit without prior knowledge must
// find.
var engines = []struct {
	name   string
	change func(*step.Profile)
	source func(talks) tacho.Source
}{
	{name: "chunked"},
	{name: "prefill-first", change: func(p *step.Profile) { p.Policy = "prefill-first" }},
	{name: "reserve", change: func(p *step.Profile) {
		p.Policy, p.StepTokens, p.Reserve = "reserve", 65536, step.Reserve{WaitSteps: 20, WaitingRatio: 0.3}
	}},
	{name: "prefixes", change: func(p *step.Profile) { p.KV.PrefixCache = true }, source: func(s talks) tacho.Source { return alike{s} }},
	{name: "speculation", change: func(p *step.Profile) { p.Speculation = step.Speculation{DraftTokens: 3, Acceptance: 0.7} }},
}

// An unknown engine is identified from its records: its policy, its limits, the
// cost of a step, and its response to a load that was not measured.
func TestLearnFindsAnEngine(t *testing.T) {
	for i, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			if i > 0 && testing.Short() {
				t.Skip("one of them shows it")
			}
			p := profile(t)
			p.KV.PrefixCache, p.MaxSequences = false, 24
			if e.change != nil {
				e.change(&p)
			}
			measure := func(name string, s Stage, source talks) *MeasuredLevel {
				s.Source, s.BlockTokens = source, p.KV.BlockTokens
				if e.source != nil {
					s.Source = e.source(source)
				}
				return seen(t, name, p, s)
			}
			var set Set
			for _, limit := range []int{1, 8, 16, 64} {
				set.Levels = append(set.Levels, measure(fmt.Sprint("closed ", limit), Stage{Arrivals: asap, Limit: limit}, talks{sessions: 6*limit + 10, turns: 1, prompt: 600, answer: 80}))
			}
			set.Levels = append(set.Levels, measure("open", Stage{Arrivals: every(90 * time.Millisecond)}, talks{sessions: 100, turns: 1, prompt: 900, answer: 60}))
			set.Levels = append(set.Levels, measure("long", Stage{Arrivals: asap, Limit: 24}, talks{sessions: 24, turns: 1, prompt: 3000, answer: 30}))
			l := must.Get(Learn(t.Context(), nil, []Set{set}, Options{NoHoldOut: true, NoAdvice: true}))(t)
			isFound(t, &p, &l.Profile)
			got := must.Get(Compare(t.Context(), l.Profile, []*MeasuredLevel{measure("other", Stage{Arrivals: every(50 * time.Millisecond)}, talks{sessions: 150, turns: 1, prompt: 400, answer: 100})}))(t)
			off := got[0].Predicted.RelativeError(got[0].Measured)
			for _, f := range []int{TTFT, TPOT, ITL, E2EL, Throughput} {
				if math.Abs(off[f]) > 0.03 {
					t.Errorf("a load that was not measured: %s is %.1f %% off", FigureNames[f], 100*off[f])
				}
			}
		})
	}
}

// isFound reports an error if the fitted engine differs from the known one.
func isFound(t *testing.T, p, found *step.Profile) {
	t.Helper()
	if found.Policy != p.Policy || found.MaxSequences != p.MaxSequences || found.StepTokens != p.StepTokens ||
		found.Speculation.DraftTokens != p.Speculation.DraftTokens || math.Abs(found.Speculation.Acceptance-p.Speculation.Acceptance) > 0.02 {
		t.Errorf("found %s, it is %s", Structure(found), Structure(p))
	}
	width := 1 + p.Speculation.DraftTokens
	for _, n := range []int{1, 8, 16, 24} {
		context := float64(n) * 640 / 1e6
		want := on(p.Cost.Step, n*width) + context*p.Cost.DecodeNsPerContextToken
		got := on(found.Cost.Decode, n*width) + context*found.Cost.DecodeNsPerContextToken
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("a step that decodes %d takes %.3f ms, found %.3f", n, want, got)
		}
	}
	pairs := 8192 * 300 / 1e6
	want := on(p.Cost.Step, 8192) + pairs*p.Cost.PrefillNsPerTokenAndContext
	got := on(found.Cost.Step, 8192) + pairs*found.Cost.PrefillNsPerTokenAndContext
	if math.Abs(got/want-1) > 0.01 {
		t.Errorf("a step full of prompts takes %.1f ms, found %.1f", want, got)
	}
}

// on is the value of a line at a number of tokens.
func on(line []step.Knot, tokens int) float64 {
	row := make([]float64, len(line))
	rises(line, float64(tokens), row)
	ms := line[0].Ms
	for i := 1; i < len(line); i++ {
		ms += row[i] * (line[i].Ms - line[i-1].Ms)
	}
	return ms
}
