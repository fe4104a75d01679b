package predict

import (
	"math"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// The first recommended run is more informative than the others: with its
// measurements the fit has smaller errors than with those of any other candidate.
func TestRecommendedRunIsMostInformative(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, on one processor")
	}
	p := profile(t)
	p.KV.PrefixCache = false
	had := []*MeasuredLevel{seen(t, "had", p, Stage{Arrivals: every(300 * time.Millisecond), Source: talks{sessions: 30, turns: 1, prompt: 100, answer: 40}})}
	o := Options{Rounds: 2}
	fit := must.Get(fitTo(t.Context(), p, had, o))(t)
	advice, err := advise(t.Context(), fit, o)
	if err != nil || len(advice) == 0 || len(advice) > mostAdvised {
		t.Fatalf("%d runs advised: %v", len(advice), err)
	}
	if len(advice[0].Identifies) == 0 {
		t.Error("the first run does not list the parameters it identifies")
	}
	unsure := func(levels []*MeasuredLevel) (all float64, each map[string]float64) {
		f := must.Get(fitTo(t.Context(), p, levels, o))(t)
		each = map[string]float64{}
		for _, k := range f.Parameters {
			all += math.Log(k.Error)
			each[k.Name] = k.Error
		}
		return all, each
	}
	_, before := unsure(had)
	best, improved := math.Inf(1), map[string]float64{}
	var rest []float64
	for i := range loads {
		l := &loads[i]
		if l.n*l.output > 50_000 && l.flags != advice[0].Flags {
			continue // it takes long, and the other runs suffice
		}
		arrivals := asap
		if l.rate > 0 {
			arrivals = every(time.Duration(1e9 / l.rate))
		}
		measured := seen(t, l.flags, p, Stage{Arrivals: arrivals, Limit: l.limit, Source: talks{sessions: l.n, turns: 1, prompt: l.prompt, answer: l.output}})
		all, each := unsure(append(had[:1:1], measured))
		t.Logf("%6.2f %s", all, l.flags)
		if l.flags == advice[0].Flags {
			best, improved = all, each
		} else {
			rest = append(rest, all)
		}
	}
	better := 0
	for _, all := range rest {
		if all < best {
			better++
		}
	}
	if better > 1 { // the second best may be equally good
		t.Errorf("%d of %d other runs reduce the errors more than the recommended one", better, len(rest))
	}
	for _, name := range advice[0].Identifies {
		if improved[name] > 0.75*before[name] {
			t.Errorf("%s: the error was %.0f %%, and is %.0f %% with the recommended run", name, 100*before[name], 100*improved[name])
		}
	}
}
