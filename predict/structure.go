package predict

import (
	"cmp"
	"context"
	"math"

	"tacho/sim/step"
)

// structure chooses how the engine is built: with or without an API process and
// steps in flight, its policy, how many tokens a step has, and what limits the
// batch. Each choice is simulated, and the one that explains most is kept; what
// makes no difference stays as most engines have it.
func structure(ctx context.Context, levels []*Seen) (p step.Profile, sure []string, err error) {
	best, least := step.Profile{}, math.Inf(1)
	for _, p := range []step.Profile{Generic(), Plain()} {
		p, sure := ReadOff(p, levels)
		p, _ = choose(ctx, p, levels, caps)
		f, err := FitTo(ctx, p, levels, Options{Rounds: 3, Sure: sure, rough: true})
		if err != nil {
			return p, nil, err
		}
		p, d := choose(ctx, f.Profile, levels, schedules)
		if d += float64(len(knobs(p))) * perKnob; d < least {
			best, least = p, d
		}
	}
	// Costs begin again at what was read off: a rough fit leads away from it.
	p, sure = ReadOff(best, levels)
	return p, sure, nil
}

// perKnob is by how much a knob must make the distance smaller to be worth having.
const perKnob = 1

// worthwhile is by what share a choice must be better than the usual: other numbers
// would make up for less.
const worthwhile = 0.15

// A choice changes how an engine is built.
type choice func(*step.Profile)

// caps are what may limit the batch.
func caps(_ step.Profile, levels []*Seen) []choice {
	return []choice{
		func(q *step.Profile) { q.MaxSequences = capOf(levels) },
		func(q *step.Profile) { q.KV.Blocks = cmp.Or(tokensOf(levels)/q.KV.BlockTokens, q.KV.Blocks) },
	}
}

// schedules are what a step may be made up of.
func schedules(p step.Profile, _ []*Seen) []choice {
	out := []choice{
		func(q *step.Profile) { q.Policy = "prefill-first" },
		func(q *step.Profile) {
			q.Policy, q.Reserve = "reserve", step.Reserve{WaitSteps: 20, WaitingRatio: 0.3} // TGI's defaults
		},
	}
	if p.FrontEnd != (step.FrontEnd{}) {
		out = append(out, func(q *step.Profile) { q.FrontEnd.HoldsBurst = true })
	}
	for _, tokens := range []int{512, 1024, 2048, 4096, 16384, 32768} {
		out = append(out, func(q *step.Profile) { q.StepTokens = tokens })
	}
	return out
}

// choose tries choices one after the other, and keeps what explains more.
func choose(ctx context.Context, p step.Profile, levels []*Seen, of func(step.Profile, []*Seen) []choice) (step.Profile, float64) {
	f := &fitter{ctx: ctx, levels: levels}
	distance := func(p step.Profile) float64 {
		f.base, f.knobs = p, nil
		off, err := f.off(nil)
		if err != nil {
			return math.Inf(1) // an engine that cannot hold the requests is none
		}
		return f.distance(off, nil)
	}
	least := distance(p)
	for _, change := range of(p, levels) {
		q := p
		change(&q)
		if d := distance(q); d < (1-worthwhile)*least {
			p, least = q, d
		}
	}
	return p, least
}

// capOf is how many answers were written at once at most where more were waiting;
// none: as many as anybody has.
func capOf(levels []*Seen) int {
	most := 0
	for _, s := range levels {
		if s.most < s.flying {
			most = max(most, s.most)
		}
	}
	return cmp.Or(most, 1024)
}

// tokensOf is how many tokens these had.
func tokensOf(levels []*Seen) int {
	most := 0
	for _, s := range levels {
		if s.most < s.flying {
			most = max(most, s.tokens)
		}
	}
	return most
}
