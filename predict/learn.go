package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tacho/sim/step"
)

// A Set is the levels of one run.
type Set struct {
	Name   string
	Levels []*Seen
}

// Learned is an engine that was fitted to runs, and how far it can be trusted.
type Learned struct {
	Fit
	Sets    []Set
	HeldOut []Explained // levels as the fit to the other runs predicts them
	Folds   string      // what was held out at a time; empty: nothing
	LeftOut []string    // levels that were not used, and why
	Advice  []Advised   // runs that would tell most, the best first
	Cut     []string    // what there was no time for

	Unidentified []Unidentified // fields of the profile that the runs do not identify
}

// Learn fits an engine to runs: costs are read off the times of tokens, then
// structure and numbers are found by simulating the same requests. Each run is then
// foretold by a fit to the others. With a start, its structure is kept, and so is what
// it knows of the costs of a step.
func Learn(ctx context.Context, start *step.Profile, sets []Set, o Options) (*Learned, error) {
	out := &Learned{Sets: sets}
	sets = out.leaveOut(sets)
	levels := levelsOf(sets)
	if len(levels) == 0 {
		return nil, errors.New("no level to fit to")
	}
	o.begin()
	fresh := start == nil
	if fresh {
		p, sure, left, err := structure(ctx, levels, o.share(0.4))
		if err != nil {
			return nil, err
		}
		start, o.Sure = &p, sure
		out.cutIf(len(left) > 0, "structures that were not tried: "+strings.Join(left, ", "))
		o.say("structure: %s", Structure(start))
	} else {
		p := onThisHost(ctx, *start, levels)
		start, o.Sure = &p, carriedOver(start)
	}
	mine := o
	if !o.NoHoldOut {
		mine = o.share(0.5)
	}
	f, err := fitTo(ctx, *start, levels, mine)
	if err != nil {
		return nil, err
	}
	out.Fit = *f
	out.cutIf(f.cut, "the search for better numbers ended early")
	out.Unidentified = out.unidentified(ctx, levels)
	out.Profile.HeldOutErrors = step.HeldOutErrors{} // those of a start are of another server
	out.Profile.FittedTo = fittedTo(&out.Profile, levels)
	if err := out.holdOut(ctx, start, fresh, sets, o); err != nil {
		return nil, err
	}
	if out.cutIf(o.late() && !o.NoAdvice, "which runs would tell most") {
		return out, nil
	}
	out.Advice, err = advise(ctx, f, o)
	return out, err
}

// cutIf notes what there was no time for.
func (l *Learned) cutIf(cut bool, what string) bool {
	if cut {
		l.Cut = append(l.Cut, what)
	}
	return cut
}

// onThisHost is an engine whose host is faster or slower by one factor in all that it
// does: the one that explains the levels best. Runs rarely show all of that work, and
// other processors do not change one part of it alone.
func onThisHost(ctx context.Context, p step.Profile, levels []*Seen) step.Profile {
	f := &fitter{ctx: ctx, levels: levels}
	least := f.distanceOf(p)
	for _, factor := range []float64{1 / hostStep, hostStep} {
		for {
			q := p
			for _, ms := range hostTimes(&q) {
				*ms *= factor
			}
			d := f.distanceOf(q)
			if d >= least {
				break
			}
			p, least = q, d
		}
	}
	return p
}

// hostStep is by what factor the speed of a host is changed at a time.
const hostStep = 1.05

// carriedOver is how sure the start is of its costs: they are those of a model on a
// GPU, and another machine with that GPU has them, too. The processors of its host do
// all their work faster or slower there, and some of it more than other.
func carriedOver(start *step.Profile) map[string]float64 {
	sure := map[string]float64{}
	for name, e := range start.Errors {
		if sure[name] = max(e, leastCarried); !strings.HasPrefix(name, "cost.") {
			sure[name] = max(e, leastApart)
		}
	}
	return sure
}

const (
	leastCarried = 0.03 // how far costs may be off on another GPU of the same kind
	leastApart   = 0.1  // and how far one time of a host from what the others are changed by
)

func levelsOf(sets []Set) (out []*Seen) {
	for _, s := range sets {
		out = append(out, s.Levels...)
	}
	return out
}

// leaveOut takes levels out in which the server stood still.
func (l *Learned) leaveOut(sets []Set) (out []Set) {
	for _, set := range sets {
		kept := Set{Name: set.Name}
		for _, s := range set.Levels {
			if s.why != "" {
				l.LeftOut = append(l.LeftOut, s.Name+": "+s.why)
				continue
			}
			kept.Levels = append(kept.Levels, s)
		}
		if len(kept.Levels) > 0 {
			out = append(out, kept)
		}
	}
	if len(out) == 0 {
		l.LeftOut = nil
		return sets // a level with a stall is better than none
	}
	return out
}

// Structure is how an engine is built, in words.
func Structure(p *step.Profile) string {
	parts := []string{p.Policy, fmt.Sprintf("%d tokens a step", p.StepTokens), fmt.Sprintf("%d sequences", p.MaxSequences)}
	if p.KV.Blocks > 0 {
		parts = append(parts, fmt.Sprintf("keys and values of %d tokens", p.KV.Blocks*p.KV.BlockTokens))
	}
	if s := p.Speculation; s.DraftTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d draft tokens, of which %.0f %% are accepted", s.DraftTokens, 100*s.Acceptance))
	}
	if p.Host.StepsInFlight > 1 {
		parts = append(parts, "two steps in flight")
	}
	if p.API != (step.API{}) {
		parts = append(parts, "an API process")
	}
	return strings.Join(parts, ", ")
}

// holdOut foretells levels by fits that have not seen them: runs by the other runs;
// of a single run every second level by the others. They share its structure, and
// begin as it did.
func (l *Learned) holdOut(ctx context.Context, start *step.Profile, fresh bool, sets []Set, o Options) error {
	if o.NoHoldOut {
		return nil
	}
	l.Folds = "one run at a time"
	if len(sets) == 1 {
		if len(sets[0].Levels) < 4 {
			l.Folds = ""
			return nil
		}
		l.Folds = "every second level"
		halves := []Set{{}, {}}
		for i, s := range sets[0].Levels {
			halves[i%2].Levels = append(halves[i%2].Levels, s)
		}
		sets = halves
	}
	var left []string
	var folds [][]Explained
	for i := range sets {
		name := cmp.Or(sets[i].Name, "every second level")
		if o.late() {
			left = append(left, name)
			continue
		}
		o.say("without %s", name)
		got, err := foretell(ctx, *start, fresh, slices.Delete(slices.Clone(sets), i, i+1), sets[i], o.share(1/float64(len(sets)-i)))
		if err != nil {
			return err
		}
		folds = append(folds, got)
		l.HeldOut = append(l.HeldOut, got...)
	}
	l.Profile.HeldOutErrors = heldOutErrors(folds)
	if l.cutIf(len(left) > 0, "held out: "+strings.Join(left, ", ")) && len(l.HeldOut) == 0 {
		l.Folds = ""
	}
	order := map[string]int{}
	for i, s := range levelsOf(l.Sets) {
		order[s.Name] = i
	}
	slices.SortStableFunc(l.HeldOut, func(a, b Explained) int { return order[a.Name] - order[b.Name] })
	return nil
}

// foretell is what a fit to some runs makes of another.
func foretell(ctx context.Context, from step.Profile, fresh bool, others []Set, of Set, o Options) ([]Explained, error) {
	levels := levelsOf(others)
	if fresh {
		from.Cost.PrefillNsPerTokenAndContext = generic().Cost.PrefillNsPerTokenAndContext // the run held out may be the only one that tells
		from, o.Sure = readOff(from, levels)
	}
	o.Rounds, o.bare = foldRounds, true
	f, err := fitTo(ctx, from, levels, o)
	if err != nil {
		return nil, err
	}
	return Explain(ctx, f.Profile, of.Levels)
}

// foldRounds are fewer than a fit to all has: the last ones change little.
const foldRounds = 7

// MeanOff is the mean size of how far a figure is off, as a share, over levels that
// have it; false: none has.
func MeanOff(levels []Explained, figure int) (float64, bool) {
	var m mean
	for i := range levels {
		if off := levels[i].Predicted.Off(levels[i].Measured)[figure]; off == off {
			m.add(max(off, -off))
		}
	}
	return m.value(), m.n > 0
}
