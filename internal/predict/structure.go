package predict

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/sim/step"
)

// structure chooses the structure of the engine: with or without an API process and
// steps in flight, its policy, the tokens of a step and the limit of the batch. It
// simulates each choice and keeps the best. A choice without effect stays at the
// usual value.
func structure(ctx context.Context, levels []*MeasuredLevel, o Options) (p step.Profile, sigmas map[string]float64, left []string, err error) {
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
		o.progress("%s: distance %.1f", Structure(&p), d)
		if d < least {
			best, least = p, d
		}
	}
	if summariesOnly(levels) {
		return best, nil, left, nil
	}
	// Restart the costs from the values that were read off, because a rough fit
	// leads away from them.
	p, sigmas = readOff(best, levels)
	return p, sigmas, left, nil
}

// built returns an engine of a shape, with roughly fitted costs and the best
// limits, and its distance. A shape much worse than the best so far is abandoned.
func built(ctx context.Context, p step.Profile, levels []*MeasuredLevel, best float64, o Options) (step.Profile, float64, error) {
	p, o.StandardErrors = readOff(p, levels)
	o.Rounds, o.Progress = 3, nil
	if summariesOnly(levels) {
		p, _ = choose(ctx, p, levels, fronts, &o)
	}
	p, _ = choose(ctx, p, levels, caps, &o)
	f, err := fitTo(ctx, p, levels, o)
	if err != nil {
		return p, 0, err
	}
	p, d := choose(ctx, f.Profile, levels, schedules, &o)
	if summariesOnly(levels) && d < hopeless*best && !o.late() { // means identify costs only roughly, and rough costs hid the limits
		p, _ = choose(ctx, p, levels, caps, &o)
		if f, err = fitTo(ctx, p, levels, o); err != nil {
			return p, 0, err
		}
		p, d = choose(ctx, f.Profile, levels, schedules, &o)
	}
	return p, d + float64(len(parameters(p)))*perParameter, nil
}

// hopeless is the ratio of distances at which a shape is abandoned.
const hopeless = 2.5

func summariesOnly(levels []*MeasuredLevel) bool {
	return !slices.ContainsFunc(levels, func(s *MeasuredLevel) bool { return !s.report })
}

// shapes are the structures to try.
func shapes(levels []*MeasuredLevel) []step.Profile {
	out := []step.Profile{plain(), plain(), plain()}
	out[1].Policy = "prefill-first"
	out[2].Policy, out[2].Reserve, out[2].StepTokens = "reserve", step.Reserve{WaitSteps: 20, WaitingRatio: 0.3}, 65536 // TGI's defaults
	if !summariesOnly(levels) {
		return append([]step.Profile{generic()}, out...) // summaries do not identify the processes around an engine
	}
	small := plain() // early engines with chunked prefill
	small.StepTokens = 512
	out = append(out, small)
	for i := range out {
		out[i].FrontEnd.PerRequestMs = 0.02 // by default a burst arrives before its first step ends
		for out[i].StepTokens < burstStepTokens(levels) {
			out[i].StepTokens *= 2
		}
	}
	if last := len(out) - 1; out[last].StepTokens == out[0].StepTokens {
		return out[:last]
	}
	return out
}

// burstStepTokens is a lower bound of the prompt tokens in one step, from bursts whose
// requests all got their first token together.
func burstStepTokens(levels []*MeasuredLevel) int {
	most := 0
	for _, s := range levels {
		if s.burst() && s.together99() {
			most = max(most, int(meanPrompt([]*MeasuredLevel{s})*float64(len(s.sent))))
		}
	}
	return most
}

// together99 reports whether all requests got their first token at about the same
// time.
func (s *MeasuredLevel) together99() bool {
	return len(s.sent) > 2 && s.Measured[TTFT99] > 0 && s.Measured[TTFT99] < 1.1*s.Measured[TTFT]
}

// perParameter is the minimum reduction of the distance that justifies a parameter.
const perParameter = 1

// worthwhile is the minimum relative improvement that justifies a choice, because
// other numbers could compensate for less.
const worthwhile = 0.15

// A choice changes the structure of an engine.
type choice func(*step.Profile)

// caps are possible limits of the batch.
func caps(_ step.Profile, levels []*MeasuredLevel) (out []choice) {
	for _, times := range []float64{1, 1.25, 1.5, 1.75, 2} {
		out = append(out, func(q *step.Profile) { q.MaxSequences = int(times * float64(capOf(levels))) })
		if !slices.ContainsFunc(levels, func(s *MeasuredLevel) bool { return s.report }) {
			break // it was observed, not derived from means
		}
	}
	return append(out, func(q *step.Profile) { q.KV.Blocks = cmp.Or(tokensOf(levels)/q.KV.BlockTokens, q.KV.Blocks) })
}

// fronts are possible speeds of the front end.
func fronts(step.Profile, []*MeasuredLevel) (out []choice) {
	for _, ms := range []float64{0.2, 2} {
		out = append(out, func(q *step.Profile) { q.FrontEnd.PerRequestMs = ms })
	}
	return out
}

// schedules are possible compositions of a step.
func schedules(p step.Profile, _ []*MeasuredLevel) []choice {
	var out []choice
	if p.FrontEnd != (step.FrontEnd{}) {
		out = append(out, func(q *step.Profile) { q.FrontEnd.HoldsBurst = true })
	}
	for _, tokens := range []int{512, 1024, 2048, 4096, 16384, 32768, 65536} {
		out = append(out, func(q *step.Profile) { q.StepTokens = tokens })
	}
	return out
}

// choose tries choices one after the other and keeps improvements.
func choose(ctx context.Context, p step.Profile, levels []*MeasuredLevel, of func(step.Profile, []*MeasuredLevel) []choice, o *Options) (step.Profile, float64) {
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

// distanceOf is the distance of an engine without fitting.
func (f *fitter) distanceOf(p step.Profile) float64 {
	f.base, f.parameters = p, nil
	off, err := f.residuals(nil)
	if err != nil {
		return math.Inf(1) // an engine that cannot hold the requests is impossible
	}
	return f.distance(off, nil)
}

// capOf is the maximum number of answers decoded together while others waited, or
// the usual limit if there was no queue.
func capOf(levels []*MeasuredLevel) int {
	most := 0
	for _, s := range levels {
		if s.most < s.inFlight {
			most = max(most, s.most)
		}
	}
	return cmp.Or(most, 1024)
}

// tokensOf is the number of their tokens.
func tokensOf(levels []*MeasuredLevel) int {
	most := 0
	for _, s := range levels {
		if s.most < s.inFlight {
			most = max(most, s.tokens)
		}
	}
	return most
}
