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

	"tacho/sim/step"
)

// Options are how a fit is done.
type Options struct {
	Budget time.Duration     // stop looking after so long; 0 is five minutes
	Now    func() time.Time  // the clock it is measured by; nil: no end but its own
	Say    func(line string) // how it goes; may be nil
	Rounds int               // most rounds; 0 is 12

	Sure      map[string]float64 // standard errors, as shares, of what readOff read
	NoHoldOut bool               // do not fit again without each run
	NoAdvice  bool               // do not look for runs that would tell more

	rough bool // costs need only be about right
	bare  bool // nobody asks how sure it is
	until time.Time
}

// begin has the time for it run from now.
func (o *Options) begin() {
	if o.Now != nil && o.until.IsZero() {
		o.until = o.Now().Add(cmp.Or(o.Budget, 5*time.Minute))
	}
}

// share is o with a share of the time that is left.
func (o Options) share(part float64) Options {
	if o.Now != nil {
		now := o.Now()
		o.until = now.Add(time.Duration(part * float64(o.until.Sub(now))))
	}
	return o
}

// late says whether the time is up.
func (o *Options) late() bool { return o.Now != nil && o.Now().After(o.until) }

// A Fit is a profile that explains what was measured.
type Fit struct {
	Profile step.Profile
	Knobs   []Turned
	Levels  []Explained

	covariance [][]float64 // of the errors of the knobs
	misfit     float64     // by which the residuals are larger than sigma, squared
	cut        bool        // the time was up before it was as good as it gets
}

// Turned is a number that was fitted.
type Turned struct {
	Name  string
	Unit  string
	Value float64
	Start float64
	Error float64 // standard error, as a share of the value
	Told  bool    // the runs identify it; otherwise it is near the start value
	Held  bool    // the fit does not look for it: it has the start value
}

// Explained is a measured level beside what the profile makes of it.
type Explained struct {
	Name      string
	Requests  int
	Measured  Figures
	Predicted Figures
}

// sigma is how far off counts as one, on a scale of logarithms. What is to be
// right to a few percent weighs most. A figure with 0 is left out.
var sigma = Figures{
	TTFT: 0.08, ttft50: 0.12, TTFT99: 0.2, TPOT: 0.03, ITL: 0.05, E2EL: 0.03, Throughput: 0.03, tokensPerEvent: 0.05, serverTPOT: 0.03, head: 0.15, stall1: 0.05, stall2: 0.05, stall8: 0.05, earliest: 0.1,
}

// reportSigma is the same where only a report is known, whose means count alike.
var reportSigma = Figures{TTFT: 0.04, TTFT99: 0.3, TPOT: 0.03, ITL: 0.04, E2EL: 0.03, Throughput: 0.03}

// leastHead is the shortest time to the first byte that says anything of a
// server's work: below it the network shows.
const leastHead = 5 // ms

// startSigma is how far a knob may go from where it started before that counts.
const startSigma = 0.7

// sigma is that of a knob: less where it started at what the runs themselves show,
// and more for a front end, which may be anything.
func (f *fitter) sigma(k int) float64 {
	name := f.knobs[k].name
	if strings.HasPrefix(name, "front_end.") {
		return 2 * startSigma
	}
	if slices.Contains(rarelyTold, name) {
		return cmp.Or(f.Sure[name], untoldSigma)
	}
	return cmp.Or(f.Sure[name], startSigma)
}

// weight is how much a figure of a level counts: few requests, little. Times to
// the first token of requests that went together are nearly one observation.
func (s *Seen) weight(figure int) float64 {
	if s.report {
		return 1 // its means are all there is
	}
	switch figure {
	case TTFT, ttft50, TTFT99, head, earliest:
		return min(1, 0.05+s.distinct/12)
	}
	return min(1, 0.1+float64(len(s.sent))/8)
}

// residuals are how far a level is off, in units of sigma, tamed so that one
// stall does not decide.
func (s *Seen) residuals(f Figures) (out Figures) {
	for i := range f {
		if f[i] <= 0 || sigma[i] == 0 || !s.tells(i) {
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

// tells says whether a measured figure says anything of the server: short times
// to the first byte are the network's, and what happens a few times is chance.
func (s *Seen) tells(figure int) bool {
	m := &s.Measured
	switch figure {
	case head:
		return m[head] >= leastHead
	case earliest: // of clear groups; large ones reach the engine in parts, as chance has it
		group := float64(len(s.sent)) / s.distinct
		return m[earliest] > 0 && group <= 32 && (s.Limit == 0 || math.Abs(float64(s.Limit)/group-1) < 0.1)
	case stall1, stall2, stall8:
		return m[figure] > 0 && s.distinct >= fewestStalls && !s.behind()
	}
	return m[figure] > 0
}

// A fitter looks for the knobs that explain levels.
type fitter struct {
	Options
	ctx    context.Context
	levels []*Seen
	base   step.Profile
	knobs  []knob
	start  []float64
	sharp  float64 // by how much residuals count more than sigma says; 0 is 1
	back   bool    // slopes are measured by turning knobs back
	cut    bool    // the time was up
}

// fitTo turns the knobs of a profile until it explains the levels as well as it
// can. The same input gives the same fit, unless time ends it.
func fitTo(ctx context.Context, start step.Profile, levels []*Seen, o Options) (*Fit, error) {
	if len(levels) == 0 {
		return nil, errors.New("no level to fit to")
	}
	o.begin()
	f := &fitter{Options: o, ctx: ctx, levels: levels, base: start, knobs: knobs(start)}
	f.start = read(&start, f.knobs)
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

// sharpness is by how much residuals may count more, where the engine explains the
// levels far better than a real one ever is explained: records of a simulated one.
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
	usuallyOff = 0.2 // root of the mean square of residuals: below it, an engine is explained too well
	mostSharp  = 30
)

// off are the residuals of all levels one after another.
func (f *fitter) off(at []float64) ([]float64, error) {
	out, err := f.offs([][]float64{at})
	return out[0], err
}

// offs are those of several settings of the knobs. All levels of all of them are
// simulated side by side, those that take longest first.
func (f *fitter) offs(settings [][]float64) ([][]float64, error) {
	profiles, out := make([]step.Profile, len(settings)), make([][]float64, len(settings))
	for i, at := range settings {
		profiles[i], out[i] = turned(f.base, f.knobs, at), make([]float64, len(f.levels)*figures)
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

// work is about how long a level takes to simulate.
func (s *Seen) work() (tokens int) {
	for _, q := range s.sent {
		tokens += q.output + 20
	}
	return tokens
}

// each calls do for 0 to n-1 on all processors, and returns the first error.
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

// distance is what is made small: residuals, of which a large one counts by its
// size and not by its square, and how far the knobs were turned.
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

// search is Levenberg and Marquardt's method on residuals that are weighted anew
// each round. Slopes are measured where the last ones led nowhere; else what a
// step came to corrects them.
func (f *fitter) search(from []float64) (here stand, err error) {
	var slopes [][]float64
	here = stand{at: append([]float64(nil), from...), damping: 0.1}
	if here.off, err = f.off(here.at); err != nil {
		return here, err
	}
	here.best = f.distance(here.off, here.at)
	f.back, f.cut = false, false
	fresh, wins := false, 0
	for round := 0; round < f.Rounds; round++ {
		if f.cut = f.late(); f.cut {
			break
		}
		f.say("round %d: distance %.1f", round, here.best)
		if slopes == nil || wins >= anewAfter {
			if slopes, err = f.slopes(here.at, here.off); err != nil {
				return here, err
			}
			fresh, wins = true, 0
		}
		gain, err := f.nearer(&here, slopes)
		if err != nil {
			return here, err
		}
		wins++
		if gain < enough*here.best {
			if fresh && f.back {
				break
			}
			f.back = f.back || fresh // a knob may do nothing one way and much the other
			slopes, here.damping = nil, min(here.damping, 1)
		}
		fresh = false
	}
	f.say("distance %.1f", here.best)
	return here, f.ctx.Err()
}

// A stand is where a search has come to.
type stand struct {
	at, off       []float64
	best, damping float64
}

// nearer tries steps until one leads nearer, and tells by how much; 0: none did.
func (f *fitter) nearer(here *stand, slopes [][]float64) (gain float64, err error) {
	for try := 0; try < 4 && gain == 0 && !f.late(); try++ {
		to := f.step(here.at, here.off, slopes, here.damping)
		there, err := f.off(to)
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
		*here = stand{at: to, off: there, best: d, damping: max(here.damping/4, 1e-3)}
	}
	return gain, nil
}

const (
	anewAfter = 3     // rounds after which slopes are measured again
	enough    = 0.004 // share of the distance that a round must gain
)

// correct makes slopes agree with what a step came to (Broyden's rule).
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

func (o *Options) say(format string, a ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, a...))
	}
}

// nudge is how far a knob is turned to see what it does: far enough that a
// request more or less in a step does not drown it.
const nudge = 0.06

// slopes are how residuals change with each knob.
func (f *fitter) slopes(at, off []float64) ([][]float64, error) {
	out := make([][]float64, len(f.knobs))
	turn := nudge
	if f.back {
		turn = -nudge
	}
	for k := range f.knobs {
		out[k] = append([]float64(nil), at...)
		out[k][k] += turn
	}
	out, err := f.offs(out)
	for _, r := range out {
		for i := range r {
			r[i] = (r[i] - off[i]) / turn
		}
	}
	return out, err
}

// normal are the normal equations: what the residuals and the start say of the
// knobs together.
func (f *fitter) normal(at, off []float64, slopes [][]float64) (a [][]float64, b []float64) {
	n := len(f.knobs)
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

// longestTurn is how far a knob is turned in one round.
const longestTurn = 0.4

func (f *fitter) step(at, off []float64, slopes [][]float64, damping float64) []float64 {
	a, b := f.normal(at, off, slopes)
	for i := range a {
		a[i][i] *= 1 + damping
	}
	turn := solve(a, b)
	out := make([]float64, len(at))
	for i := range at {
		out[i] = at[i] + max(-longestTurn, min(longestTurn, turn[i]))
	}
	return out
}

// result says what was found, and how sure it is.
func (f *fitter) result(at []float64) (*Fit, error) {
	out := &Fit{Profile: rounded(turned(f.base, f.knobs, at), f.knobs), cut: f.cut}
	if f.rough || f.bare {
		return out, nil
	}
	if err := f.sure(out); err != nil {
		return nil, err
	}
	var err error
	out.Levels, err = Explain(f.ctx, out.Profile, f.levels)
	return out, err
}

// Explain sets levels beside what a profile makes of them.
func Explain(ctx context.Context, p step.Profile, levels []*Seen) ([]Explained, error) {
	out := make([]Explained, len(levels))
	err := each(len(levels), func(i int) error {
		s := levels[i]
		got, err := s.predict(ctx, p, 1, gatherer{tails: true})
		out[i] = Explained{s.Name, len(s.sent), s.Measured, got}
		return err
	})
	return out, err
}
