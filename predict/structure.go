package predict

import (
	"cmp"
	"context"
	"math"
	"slices"

	"tacho/sim/step"
)

// structure chooses how the engine is built: with or without an API process and
// steps in flight, its policy, how many tokens a step has, and what limits the
// batch. Each choice is simulated, and the one that explains most is kept; what
// makes no difference stays as most engines have it.
func structure(ctx context.Context, levels []*Seen, o Options) (p step.Profile, sure map[string]float64, left []string, err error) {
	best, least := step.Profile{}, math.Inf(1)
	o.rough = true
	for i, p := range shapes(levels) {
		if i > 0 && o.late() {
			left = append(left, p.Policy)
			continue
		}
		p.Speculation = speculationOf(levels)
		p, d, err := built(ctx, p, levels, least, o)
		if err != nil {
			return p, nil, nil, err
		}
		o.say("%s: distance %.1f", Structure(&p), d)
		if d < least {
			best, least = p, d
		}
	}
	if summariesOnly(levels) {
		return best, nil, left, nil
	}
	// Costs begin again at what was read off: a rough fit leads away from it.
	p, sure = readOff(best, levels)
	return p, sure, left, nil
}

// built is an engine of a shape, with roughly fitted costs and the limits that
// explain most, and how far off it is. One that is much farther off than the best so
// far is not worth more work.
func built(ctx context.Context, p step.Profile, levels []*Seen, best float64, o Options) (step.Profile, float64, error) {
	p, o.Sure = readOff(p, levels)
	o.Rounds, o.Say = 3, nil
	if summariesOnly(levels) {
		p, _ = choose(ctx, p, levels, fronts, &o)
	}
	p, _ = choose(ctx, p, levels, caps, &o)
	f, err := fitTo(ctx, p, levels, o)
	if err != nil {
		return p, 0, err
	}
	p, d := choose(ctx, f.Profile, levels, schedules, &o)
	if summariesOnly(levels) && d < hopeless*best && !o.late() { // means tell costs only roughly, and those hid the limits
		p, _ = choose(ctx, p, levels, caps, &o)
		if f, err = fitTo(ctx, p, levels, o); err != nil {
			return p, 0, err
		}
		p, d = choose(ctx, f.Profile, levels, schedules, &o)
	}
	return p, d + float64(len(knobs(p)))*perKnob, nil
}

// hopeless is by how much a shape may be worse than the best.
const hopeless = 2.5

func summariesOnly(levels []*Seen) bool {
	return !slices.ContainsFunc(levels, func(s *Seen) bool { return !s.report })
}

// shapes are engines to begin with.
func shapes(levels []*Seen) []step.Profile {
	out := []step.Profile{plain(), plain(), plain()}
	out[1].Policy = "prefill-first"
	out[2].Policy, out[2].Reserve, out[2].StepTokens = "reserve", step.Reserve{WaitSteps: 20, WaitingRatio: 0.3}, 65536 // TGI's defaults
	if !summariesOnly(levels) {
		return append([]step.Profile{generic()}, out...) // summaries do not tell what stands around an engine
	}
	small := plain() // as engines had it when chunks were new
	small.StepTokens = 512
	out = append(out, small)
	for i := range out {
		out[i].FrontEnd.PerRequestMs = 0.02 // a burst is all there before its first step ends, unless it looks otherwise
		for out[i].StepTokens < readTogether(levels) {
			out[i].StepTokens *= 2
		}
	}
	if last := len(out) - 1; out[last].StepTokens == out[0].StepTokens {
		return out[:last]
	}
	return out
}

// readTogether is how many prompt tokens were read in one step, at least: those of a
// burst in which all got their first token together.
func readTogether(levels []*Seen) int {
	most := 0
	for _, s := range levels {
		if s.burst() && s.together99() {
			most = max(most, int(meanPrompt([]*Seen{s})*float64(len(s.sent))))
		}
	}
	return most
}

// together99 says whether all got their first token at about the same time.
func (s *Seen) together99() bool {
	return len(s.sent) > 2 && s.Measured[TTFT99] > 0 && s.Measured[TTFT99] < 1.1*s.Measured[TTFT]
}

// perKnob is by how much a knob must make the distance smaller to be worth having.
const perKnob = 1

// worthwhile is by what share a choice must be better than the usual: other numbers
// would make up for less.
const worthwhile = 0.15

// A choice changes how an engine is built.
type choice func(*step.Profile)

// caps are what may limit the batch.
func caps(_ step.Profile, levels []*Seen) (out []choice) {
	for _, times := range []float64{1, 1.25, 1.5, 1.75, 2} {
		out = append(out, func(q *step.Profile) { q.MaxSequences = int(times * float64(capOf(levels))) })
		if !slices.ContainsFunc(levels, func(s *Seen) bool { return s.report }) {
			break // it was seen, not worked out from means
		}
	}
	return append(out, func(q *step.Profile) { q.KV.Blocks = cmp.Or(tokensOf(levels)/q.KV.BlockTokens, q.KV.Blocks) })
}

// fronts are how fast requests may come through what is before the engine.
func fronts(step.Profile, []*Seen) (out []choice) {
	for _, ms := range []float64{0.2, 2} {
		out = append(out, func(q *step.Profile) { q.FrontEnd.PerRequestMs = ms })
	}
	return out
}

// schedules are what a step may be made up of.
func schedules(p step.Profile, _ []*Seen) []choice {
	var out []choice
	if p.FrontEnd != (step.FrontEnd{}) {
		out = append(out, func(q *step.Profile) { q.FrontEnd.HoldsBurst = true })
	}
	for _, tokens := range []int{512, 1024, 2048, 4096, 16384, 32768, 65536} {
		out = append(out, func(q *step.Profile) { q.StepTokens = tokens })
	}
	return out
}

// choose tries choices one after the other, and keeps what explains more.
func choose(ctx context.Context, p step.Profile, levels []*Seen, of func(step.Profile, []*Seen) []choice, o *Options) (step.Profile, float64) {
	f := &fitter{ctx: ctx, levels: levels}
	least := f.distanceOf(p)
	for _, change := range of(p, levels) {
		if o.late() {
			break
		}
		q := p
		change(&q)
		if d := f.distanceOf(q); d < (1-worthwhile)*least {
			p, least = q, d
		}
	}
	return p, least
}

// distanceOf is how far an engine as it is is off the levels.
func (f *fitter) distanceOf(p step.Profile) float64 {
	f.base, f.knobs = p, nil
	off, err := f.off(nil)
	if err != nil {
		return math.Inf(1) // an engine that cannot hold the requests is none
	}
	return f.distance(off, nil)
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
