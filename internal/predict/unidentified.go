package predict

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/sim/step"
)

// Unidentified is a field of a fitted profile that the runs do not identify.
type Unidentified struct {
	Name, Value string
	Why         string
}

// assumed are unfitted fields. They keep the value of the start. Zero
// fields have no effect.
var assumed = []struct {
	name string
	of   func(*step.Profile) any
}{
	{"cost.noise", func(p *step.Profile) any { return p.Cost.Noise }},
	{"cost.tick_ms", func(p *step.Profile) any { return p.Cost.TickMs }},
	{"cost.long_context_tokens", func(p *step.Profile) any { return p.Cost.LongContextTokens }},
	{"host.graph_tokens", func(p *step.Profile) any { return p.Host.GraphTokens }},
	{"host.noise", func(p *step.Profile) any { return p.Host.Noise }},
	{"api.turns", func(p *step.Profile) any { return p.API.Turns }},
	{"api.piece_tokens", func(p *step.Profile) any { return p.API.PieceTokens }},
	{"kv.block_tokens", func(p *step.Profile) any { return p.KV.BlockTokens }},
	{"kv.watermark", func(p *step.Profile) any { return p.KV.Watermark }},
	{"output", func(p *step.Profile) any {
		return fmt.Sprintf("%s, mean %.4g", p.Output.Kind, p.Output.Mean)
	}},
}

// limits are fields that have an effect only if a run reaches them.
var limits = []struct {
	name string
	at   func(*step.Profile) *int
}{
	{"max_sequences", func(p *step.Profile) *int { return &p.MaxSequences }},
	{"step_tokens", func(p *step.Profile) *int { return &p.StepTokens }},
	{"kv.blocks", func(p *step.Profile) *int { return &p.KV.Blocks }},
}

// unidentified returns the fields of the fitted profile that the levels do not
// identify: parameters without an effect, limits that no level reached, and fields
// that are not fitted.
func (l *Learned) unidentified(ctx context.Context, levels []*MeasuredLevel) (out []Unidentified) {
	p := l.Profile
	for _, k := range l.Parameters {
		if k.Identified {
			continue
		}
		why := fmt.Sprintf("standard error %.2g %%", 100*k.Error)
		if k.Held {
			why += ", not fitted"
		}
		out = append(out, Unidentified{k.Name, fmt.Sprintf("%.4g %s", k.Value, k.Unit), why})
	}
	f := &fitter{ctx: ctx, levels: levels}
	here := f.distanceOf(p)
	for _, limit := range limits {
		n := *limit.at(&p)
		if limit.name == "kv.blocks" && (n == 0 || slices.ContainsFunc(levels, func(s *MeasuredLevel) bool { return s.kvTokens > 0 })) {
			continue // the server's metrics page states it
		}
		q := p
		*limit.at(&q) = 2 * n
		if math.Abs(f.distanceOf(q)-here) < perParameter {
			out = append(out, Unidentified{limit.name, fmt.Sprint(n), "no run reached this limit, so any larger number fits"})
		}
	}
	if p.KV.PrefixCache && !fittedTo(&p, levels).Cached {
		out = append(out, Unidentified{"kv.prefix_cache", "true", "no prompt was found in a cache"})
	}
	for _, a := range assumed {
		if v := a.of(&p); v != 0 && v != 0.0 {
			out = append(out, Unidentified{a.name, fmt.Sprint(v), "not fitted"})
		}
	}
	return out
}
