package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/sim/step"
)

// Options configure a fit.
type Options struct {
	Budget   time.Duration     // time limit; five minutes if 0
	Now      func() time.Time  // clock for the time limit; no time limit if nil
	Progress func(line string) // receives progress lines; may be nil
	Rounds   int               // maximum number of rounds; 12 if 0

	StandardErrors map[string]float64 // relative standard errors of values from readOff
	NoHoldOut      bool               // skip the cross-validation
	NoAdvice       bool               // do not search for recommended runs

	rough    bool // an approximate fit is enough
	noErrors bool // do not compute standard errors
	until    time.Time
}

// begin starts the time limit.
func (o *Options) begin() {
	if o.Now != nil && o.until.IsZero() {
		o.until = o.Now().Add(cmp.Or(o.Budget, 5*time.Minute))
	}
}

// share returns o with a fraction of the remaining time.
func (o Options) share(part float64) Options {
	if o.Now != nil {
		now := o.Now()
		o.until = now.Add(time.Duration(part * float64(o.until.Sub(now))))
	}
	return o
}

// late reports whether the time limit has passed.
func (o *Options) late() bool { return o.Now != nil && o.Now().After(o.until) }

// A Fit is a profile fitted to measurements.
type Fit struct {
	Profile    step.Profile
	Parameters []Parameter
	Levels     []Comparison

	covariance [][]float64 // of the parameters' errors
	misfit     float64     // mean square of the residuals in units of sigma
	timedOut   bool        // the time limit ended the search
}

// A Parameter is a fitted number of a profile.
type Parameter struct {
	Name       string
	Unit       string
	Value      float64
	Error      float64 // relative standard error
	Identified bool    // the runs identify the value; otherwise it is near the start value
	Held       bool    // the fit keeps the start value
}

// A Comparison is a measured level and its prediction.
type Comparison struct {
	Name      string
	Requests  int
	Measured  Figures
	Predicted Figures
}

// sigma is the tolerance of each figure on a logarithmic scale. The most important
// figures have the smallest tolerance. A figure with 0 is ignored.
var sigma = Figures{
	TTFT: 0.08, ttft50: 0.12, TTFT99: 0.2, TPOT: 0.03, ITL: 0.05, E2EL: 0.03, Throughput: 0.03, tokensPerEvent: 0.05, serverTPOT: 0.03, head: 0.15, stall1: 0.05, stall2: 0.05, stall8: 0.05, earliest: 0.1,
}

// reportSigma is the tolerance if only a report is known, whose means have equal
// weight.
var reportSigma = Figures{TTFT: 0.04, TTFT99: 0.3, TPOT: 0.03, ITL: 0.04, E2EL: 0.03, Throughput: 0.03}

// leastHead is the shortest time to the first byte that reflects the server. Below
// it the network dominates.
const leastHead = 5 // ms

// startSigma is the tolerance of a parameter's distance from its start value.
const startSigma = 0.7

// sigma is the tolerance of parameter k: smaller if its start value was read off
// the runs, larger for a front end, whose costs vary widely.
func (f *fitter) sigma(k int) float64 {
	name := f.parameters[k].name
	if strings.HasPrefix(name, "front_end.") {
		return 2 * startSigma
	}
	if slices.Contains(weaklyIdentified, name) {
		return cmp.Or(f.StandardErrors[name], unidentifiedSigma)
	}
	return cmp.Or(f.StandardErrors[name], startSigma)
}

// weight is the weight of a figure of a level, which grows with the number of
// requests. TTFTs of requests sent together are nearly one observation.
func (s *MeasuredLevel) weight(figure int) float64 {
	if s.report {
		return 1 // only its means are known
	}
	switch figure {
	case TTFT, ttft50, TTFT99, head, earliest:
		return min(1, 0.05+s.distinct/12)
	}
	return min(1, 0.1+float64(len(s.sent))/8)
}

// residuals are the errors of a level in units of sigma. Large residuals are damped
// so that one stall does not dominate.
func (s *MeasuredLevel) residuals(f Figures) (out Figures) {
	for i := range f {
		if f[i] <= 0 || sigma[i] == 0 || !s.informative(i) {
			continue
		}
		scale := sigma[i]
		if s.report {
			scale = reportSigma[i]
		}
		if scale > 0 {
			out[i] = math.Sqrt(s.weight(i)) * math.Log(f[i]/s.Measured[i]) / scale
		}
	}
	return out
}

// informative reports whether a measured figure reflects the server. Short times to
// the first byte are network time, and rare events are random.
func (s *MeasuredLevel) informative(figure int) bool {
	m := &s.Measured
	switch figure {
	case head:
		return m[head] >= leastHead
	case earliest: // only for clear groups; large groups reach the engine in random parts
		group := float64(len(s.sent)) / s.distinct
		return m[earliest] > 0 && group <= 32 && (s.Limit == 0 || math.Abs(float64(s.Limit)/group-1) < 0.1)
	case stall1, stall2, stall8:
		return m[figure] > 0 && s.distinct >= fewestStalls && !s.behind()
	}
	return m[figure] > 0
}

// A fitter searches for the parameters that explain the levels.
type fitter struct {
	Options
	ctx        context.Context
	levels     []*MeasuredLevel
	base       step.Profile
	parameters []parameter
	start      []float64
	sharp      float64 // factor on the weight of residuals; 0 means 1
	back       bool    // use backward differences for slopes
	timedOut   bool    // the time limit has passed
}

// fitTo fits the parameters of a profile to the levels. The same input gives the
// same fit, unless the time limit ends it.
func fitTo(ctx context.Context, start step.Profile, levels []*MeasuredLevel, o Options) (*Fit, error) {
	if len(levels) == 0 {
		return nil, errors.New("no levels to fit to")
	}
	o.begin()
	f := &fitter{Options: o, ctx: ctx, levels: levels, base: start, parameters: parameters(start)}
	f.start = read(&start, f.parameters)
	if f.Rounds == 0 {
		f.Rounds = 12
	}
	here, err := f.search(f.start)
	if err != nil {
		return nil, err
	}
	if sharp := sharpness(here.off); sharp > 1 && !f.rough {
		f.sharp = sharp
		if here, err = f.search(here.at); err != nil {
			return nil, err
		}
	}
	return f.result(here.at)
}

// sharpness is a factor on the weight of residuals. It is large for records of a
// simulated engine, because the model explains them far better than a real engine.
func sharpness(off []float64) float64 {
	sum, n := 0.0, 0.0
	for _, r := range off {
		if r != 0 {
			sum += r * r
			n++
		}
	}
	return min(mostSharp, usuallyOff/math.Sqrt(sum/max(n, 1)))
}

const (
	usuallyOff = 0.2 // root mean square of residuals below which the levels are explained too well for a real engine
	mostSharp  = 30
)

// residuals are the residuals of all levels, one after another.
func (f *fitter) residuals(at []float64) ([]float64, error) {
	out, err := f.residualsOf([][]float64{at})
	return out[0], err
}

// residualsOf are the residuals of several parameter settings. All levels of all settings
// are simulated in parallel, the longest first.
func (f *fitter) residualsOf(settings [][]float64) ([][]float64, error) {
	profiles, out := make([]step.Profile, len(settings)), make([][]float64, len(settings))
	for i, at := range settings {
		profiles[i], out[i] = withValues(f.base, f.parameters, at), make([]float64, len(f.levels)*figures)
	}
	order := make([]int, len(f.levels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return f.levels[b].work() - f.levels[a].work() })
	return out, each(len(order)*len(settings), func(n int) error {
		i, setting := order[n/len(settings)], n%len(settings)
		got, err := f.levels[i].Predict(f.ctx, profiles[setting], 1)
		if err != nil {
			return fmt.Errorf("%s: %w", f.levels[i].Name, err)
		}
		r := f.levels[i].residuals(got)
		for k := range r {
			out[setting][i*figures+k] = r[k] * cmp.Or(f.sharp, 1)
		}
		return nil
	})
}

// work is an estimate of the time to simulate a level.
func (s *MeasuredLevel) work() (tokens int) {
	for _, q := range s.sent {
		tokens += q.output + 20
	}
	return tokens
}

// each calls do for 0 to n-1 on all processors and returns the first error.
func each(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= n || first != nil
				mu.Unlock()
				if stop {
					return
				}
				if err := do(i); err != nil {
					mu.Lock()
					first = errors.Join(first, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// distance is the objective function: a robust sum of the residuals (linear instead
// of quadratic if large) and the distances of the parameters from their start.
func (f *fitter) distance(off, at []float64) float64 {
	sum := 0.0
	for _, r := range off {
		sum += math.Sqrt(1+r*r) - 1
	}
	for i := range at {
		d := (at[i] - f.start[i]) / f.sigma(i)
		sum += d * d / 2
	}
	return sum
}

// search is the Levenberg-Marquardt method on iteratively reweighted residuals.
// Slopes are measured again if the last ones led nowhere; otherwise they are
// updated from the last step.
func (f *fitter) search(from []float64) (here searchState, err error) {
	var slopes [][]float64
	here = searchState{at: append([]float64(nil), from...), damping: 0.1}
	if here.off, err = f.residuals(here.at); err != nil {
		return here, err
	}
	here.best = f.distance(here.off, here.at)
	f.back, f.timedOut = false, false
	fresh, wins := false, 0
	for round := 0; round < f.Rounds; round++ {
		if f.timedOut = f.late(); f.timedOut {
			break
		}
		f.progress("round %d: distance %.1f", round, here.best)
		if slopes == nil || wins >= anewAfter {
			if slopes, err = f.slopes(here.at, here.off); err != nil {
				return here, err
			}
			fresh, wins = true, 0
		}
		gain, err := f.improve(&here, slopes)
		if err != nil {
			return here, err
		}
		wins++
		if gain < enough*here.best {
			if fresh && f.back {
				break
			}
			f.back = f.back || fresh // a parameter may have an effect in one direction only
			slopes, here.damping = nil, min(here.damping, 1)
		}
		fresh = false
	}
	f.progress("distance %.1f", here.best)
	return here, f.ctx.Err()
}

// A searchState is the current point of a search.
type searchState struct {
	at, off       []float64
	best, damping float64
}

// improve tries steps until one reduces the distance, and returns the gain, or 0 if
// none did.
func (f *fitter) improve(here *searchState, slopes [][]float64) (gain float64, err error) {
	for try := 0; try < 4 && gain == 0 && !f.late(); try++ {
		to := f.step(here.at, here.off, slopes, here.damping)
		there, err := f.residuals(to)
		if err != nil {
			return 0, err
		}
		d := f.distance(there, to)
		correct(slopes, here.at, to, here.off, there)
		if d >= here.best {
			here.damping *= 5
			continue
		}
		gain = here.best - d
		*here = searchState{at: to, off: there, best: d, damping: max(here.damping/4, 1e-3)}
	}
	return gain, nil
}

const (
	anewAfter = 3     // rounds after which slopes are measured again
	enough    = 0.004 // minimum relative gain of a round
)

// correct updates slopes with the result of a step (Broyden's method).
func correct(slopes [][]float64, from, to, before, after []float64) {
	length := 0.0
	for k := range from {
		length += (to[k] - from[k]) * (to[k] - from[k])
	}
	if length < 1e-12 {
		return
	}
	for r := range before {
		miss := after[r] - before[r]
		for k := range from {
			miss -= slopes[k][r] * (to[k] - from[k])
		}
		for k := range from {
			slopes[k][r] += miss * (to[k] - from[k]) / length
		}
	}
}

func (o *Options) progress(format string, a ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, a...))
	}
}

// nudge is the step of numerical derivatives: large enough to exceed the effect of
// one request more or less in a step of the engine.
const nudge = 0.06

// slopes are the derivatives of the residuals with respect to each parameter.
func (f *fitter) slopes(at, off []float64) ([][]float64, error) {
	out := make([][]float64, len(f.parameters))
	turn := nudge
	if f.back {
		turn = -nudge
	}
	for k := range f.parameters {
		out[k] = append([]float64(nil), at...)
		out[k][k] += turn
	}
	out, err := f.residualsOf(out)
	for _, r := range out {
		for i := range r {
			r[i] = (r[i] - off[i]) / turn
		}
	}
	return out, err
}

// normal are the normal equations of the residuals and the start values.
func (f *fitter) normal(at, off []float64, slopes [][]float64) (a [][]float64, b []float64) {
	n := len(f.parameters)
	a, b = make([][]float64, n), make([]float64, n)
	for i := range n {
		a[i] = make([]float64, n)
		for j := range i + 1 {
			for r := range off {
				a[i][j] += slopes[i][r] * slopes[j][r] / math.Sqrt(1+off[r]*off[r])
			}
			a[j][i] = a[i][j]
		}
		for r := range off {
			b[i] -= slopes[i][r] * off[r] / math.Sqrt(1+off[r]*off[r])
		}
		a[i][i] += 1 / (f.sigma(i) * f.sigma(i))
		b[i] -= (at[i] - f.start[i]) / (f.sigma(i) * f.sigma(i))
	}
	return a, b
}

// maxChange is the maximum change of a parameter in one round, on a logarithmic
// scale.
const maxChange = 0.4

func (f *fitter) step(at, off []float64, slopes [][]float64, damping float64) []float64 {
	a, b := f.normal(at, off, slopes)
	for i := range a {
		a[i][i] *= 1 + damping
	}
	turn := solve(a, b)
	out := make([]float64, len(at))
	for i := range at {
		out[i] = at[i] + max(-maxChange, min(maxChange, turn[i]))
	}
	return out
}

// result returns the fit with its standard errors.
func (f *fitter) result(at []float64) (*Fit, error) {
	out := &Fit{Profile: rounded(withValues(f.base, f.parameters, at), f.parameters), timedOut: f.timedOut}
	if f.rough || f.noErrors {
		return out, nil
	}
	if err := f.standardErrors(out); err != nil {
		return nil, err
	}
	var err error
	out.Levels, err = Compare(f.ctx, out.Profile, f.levels)
	return out, err
}

// Compare predicts levels with a profile.
func Compare(ctx context.Context, p step.Profile, levels []*MeasuredLevel) ([]Comparison, error) {
	out := make([]Comparison, len(levels))
	err := each(len(levels), func(i int) error {
		s := levels[i]
		got, err := s.predict(ctx, p, 1, gatherer{tails: true})
		out[i] = Comparison{s.Name, len(s.sent), s.Measured, got}
		return err
	})
	return out, err
}
