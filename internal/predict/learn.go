package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/sim/step"
)

// A Set is the levels of one run.
type Set struct {
	Name   string
	Levels []*MeasuredLevel
}

// Learned is an engine fitted to runs, and its errors.
type Learned struct {
	Fit
	Sets     []Set
	HeldOut  []Comparison     // levels predicted by the fit to the other runs
	Folds    string           // the unit of cross-validation; none if empty
	Excluded []string         // excluded levels, with reasons
	Advice   []RecommendedRun // the most informative runs, best first
	Skipped  []string         // steps skipped for lack of time

	Unidentified []Unidentified // fields of the profile that the runs do not identify
}

// Learn fits an engine to runs. First it reads costs off the token times; then it
// finds structure and parameters by simulating the same requests. Finally it
// predicts each run from a fit to the others. If start is given, its structure and
// its knowledge of step costs are kept.
func Learn(ctx context.Context, start *step.Profile, sets []Set, o Options) (*Learned, error) {
	out := &Learned{Sets: sets}
	sets = out.excludeStalled(sets)
	levels := levelsOf(sets)
	if len(levels) == 0 {
		return nil, errors.New("no levels to fit to")
	}
	o.begin()
	fresh := start == nil
	if fresh {
		p, sigmas, left, err := structure(ctx, levels, o.share(0.4))
		if err != nil {
			return nil, err
		}
		start, o.StandardErrors = &p, sigmas
		out.skipIf(len(left) > 0, "untested structures: "+strings.Join(left, ", "))
		o.progress("structure: %s", Structure(start))
	} else {
		p := onThisHost(ctx, *start, levels)
		start, o.StandardErrors = &p, carriedOver(start)
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
	out.skipIf(f.timedOut, "the search for parameters ended early")
	out.Unidentified = out.unidentified(ctx, levels)
	out.Profile.HeldOutErrors = step.HeldOutErrors{} // the errors of a start profile belong to another server
	out.Profile.FittedTo = fittedTo(&out.Profile, levels)
	if err := out.holdOut(ctx, start, fresh, sets, o); err != nil {
		return nil, err
	}
	if out.skipIf(o.late() && !o.NoAdvice, "recommended runs") {
		return out, nil
	}
	out.Advice, err = advise(ctx, f, o)
	return out, err
}

// skipIf records a step skipped for lack of time.
func (l *Learned) skipIf(cut bool, what string) bool {
	if cut {
		l.Skipped = append(l.Skipped, what)
	}
	return cut
}

// onThisHost scales all host times of an engine by the one factor that explains the
// levels best. Runs rarely show all of this work, and other processors do not
// change only one part of it.
func onThisHost(ctx context.Context, p step.Profile, levels []*MeasuredLevel) step.Profile {
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

// hostStep is the step of the host factor.
const hostStep = 1.05

// carriedOver returns the standard errors of the start profile's costs on this
// machine. The costs belong to a model on a GPU, so another machine with that GPU
// has the same. Host times change by a common factor, and some more than others.
func carriedOver(start *step.Profile) map[string]float64 {
	sigmas := map[string]float64{}
	for name, e := range start.Errors {
		if sigmas[name] = max(e, leastCarried); !strings.HasPrefix(name, "cost.") {
			sigmas[name] = max(e, leastApart)
		}
	}
	return sigmas
}

const (
	leastCarried = 0.03 // relative error of costs on another GPU of the same kind
	leastApart   = 0.1  // relative deviation of one host time from the common factor
)

func levelsOf(sets []Set) (out []*MeasuredLevel) {
	for _, s := range sets {
		out = append(out, s.Levels...)
	}
	return out
}

// excludeStalled excludes levels with a stall of the server.
func (l *Learned) excludeStalled(sets []Set) (out []Set) {
	for _, set := range sets {
		kept := Set{Name: set.Name}
		for _, s := range set.Levels {
			if s.excluded != "" {
				l.Excluded = append(l.Excluded, s.Name+": "+s.excluded)
				continue
			}
			kept.Levels = append(kept.Levels, s)
		}
		if len(kept.Levels) > 0 {
			out = append(out, kept)
		}
	}
	if len(out) == 0 {
		l.Excluded = nil
		return sets // a level with a stall is better than none
	}
	return out
}

// Structure describes the structure of an engine.
func Structure(p *step.Profile) string {
	parts := []string{p.Policy, fmt.Sprintf("%d tokens per step", p.StepTokens), fmt.Sprintf("%d sequences", p.MaxSequences)}
	if p.KV.Blocks > 0 {
		parts = append(parts, fmt.Sprintf("keys and values of %d tokens", p.KV.Blocks*p.KV.BlockTokens))
	}
	if s := p.Speculation; s.DraftTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d draft tokens (%.0f %% accepted)", s.DraftTokens, 100*s.Acceptance))
	}
	if p.Host.StepsInFlight > 1 {
		parts = append(parts, "two steps in flight")
	}
	if p.API != (step.API{}) {
		parts = append(parts, "an API process")
	}
	return strings.Join(parts, ", ")
}

// holdOut predicts levels by fits without them: each run from the other runs, or
// every second level of a single run from the others. The fits share the structure
// and the start of the full fit.
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
	var folds [][]Comparison
	for i := range sets {
		name := cmp.Or(sets[i].Name, "every second level")
		if o.late() {
			left = append(left, name)
			continue
		}
		o.progress("without %s", name)
		got, err := predictHeldOut(ctx, *start, fresh, slices.Delete(slices.Clone(sets), i, i+1), sets[i], o.share(1/float64(len(sets)-i)))
		if err != nil {
			return err
		}
		folds = append(folds, got)
		l.HeldOut = append(l.HeldOut, got...)
	}
	l.Profile.HeldOutErrors = heldOutErrors(folds)
	if l.skipIf(len(left) > 0, "held out: "+strings.Join(left, ", ")) && len(l.HeldOut) == 0 {
		l.Folds = ""
	}
	order := map[string]int{}
	for i, s := range levelsOf(l.Sets) {
		order[s.Name] = i
	}
	slices.SortStableFunc(l.HeldOut, func(a, b Comparison) int { return order[a.Name] - order[b.Name] })
	return nil
}

// predictHeldOut predicts a run from a fit to other runs.
func predictHeldOut(ctx context.Context, from step.Profile, fresh bool, others []Set, of Set, o Options) ([]Comparison, error) {
	levels := levelsOf(others)
	if fresh {
		from.Cost.PrefillNsPerTokenAndContext = generic().Cost.PrefillNsPerTokenAndContext // the start value may come from the held-out run
		from, o.StandardErrors = readOff(from, levels)
	}
	o.Rounds, o.noErrors = foldRounds, true
	f, err := fitTo(ctx, from, levels, o)
	if err != nil {
		return nil, err
	}
	return Compare(ctx, f.Profile, of.Levels)
}

// foldRounds is lower than the rounds of a full fit, because the last rounds change
// little.
const foldRounds = 7

// MeanError is the mean absolute relative error of a figure over the levels that
// contain it, or false if there are none.
func MeanError(levels []Comparison, figure int) (float64, bool) {
	var m mean
	for i := range levels {
		if off := levels[i].Predicted.RelativeError(levels[i].Measured)[figure]; off == off {
			m.add(max(off, -off))
		}
	}
	return m.value(), m.n > 0
}
