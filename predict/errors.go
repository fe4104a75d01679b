package predict

import (
	"math"
	"slices"
	"strings"
)

// before is the standard error of a knob that no run says anything of. What was read
// off the token times does not count: it comes from the same runs, and the residuals
// have it already. A start profile that states errors comes from other runs.
func (f *fitter) before(k int) float64 {
	name := f.knobs[k].name
	if e, ok := f.base.Errors[name]; ok {
		return max(e, f.sigma(k))
	}
	if strings.HasPrefix(name, "front_end.") {
		return 2 * startSigma
	}
	return startSigma
}

// covariance is that of the errors of the knobs. The information in the residuals is
// scaled by their size, because sigma only says how figures count against each other.
// The distance to the minimum of the residuals is added: values that were read off, or
// a search that ended early, may hold a knob away from it.
func (f *fitter) covariance(at, off []float64, slopes [][]float64, scale float64) [][]float64 {
	n := len(f.knobs)
	a, b := make([][]float64, n), make([]float64, n)
	for i := range n {
		a[i] = make([]float64, n)
		for j := range i + 1 {
			for r := range off {
				a[i][j] += slopes[i][r] * slopes[j][r] / math.Sqrt(1+off[r]*off[r]) / scale
			}
			a[j][i] = a[i][j]
		}
		for r := range off {
			b[i] -= slopes[i][r] * off[r] / math.Sqrt(1+off[r]*off[r]) / scale
		}
		prior := 1 / (f.before(i) * f.before(i))
		a[i][i] += prior
		b[i] -= (at[i] - f.start[i]) * prior
	}
	out, shift := inverted(a), solve(a, b)
	for i := range n {
		for j := range n {
			out[i][j] += shift[i] * shift[j]
		}
	}
	return out
}

// misfit is the reduced chi-square of the residuals, times the number of residuals for
// each independent one: TTFT, its percentiles and the first byte of a level are off
// together, and so are TPOT, ITL and throughput.
func (f *fitter) misfit(off []float64) float64 {
	sum, n := 0.0, 0
	kinds := map[[2]int]bool{}
	for r, x := range off {
		if x != 0 {
			sum += x * x / math.Sqrt(1+x*x)
			n++
			kinds[[2]int{r / figures, kindOf(r % figures)}] = true
		}
	}
	if n == 0 {
		return 1
	}
	each := float64(n) / float64(len(kinds))
	return max(each*sum/float64(max(n-len(f.knobs), len(kinds))), leastMisfit)
}

// leastMisfit keeps the scale above zero if a simulated engine is explained exactly.
const leastMisfit = 1e-4

// kindOf says which figures are off together: waits for the first token, times of
// tokens, gaps.
func kindOf(figure int) int {
	switch figure {
	case TTFT, ttft50, TTFT99, head, earliest:
		return 0
	case stall1, stall2, stall8:
		return 2
	}
	return 1
}

// sure finds the standard errors of a fit. What was held still counts as uncertain,
// because a wrong value of it is made up for by others.
func (f *fitter) sure(fit *Fit) error {
	start := turned(f.base, f.knobs, f.start)
	g := &fitter{Options: f.Options, ctx: f.ctx, levels: f.levels, base: fit.Profile, knobs: uncertain(fit.Profile), sharp: f.sharp}
	g.start = read(&start, g.knobs)
	g.base.Errors = f.base.Errors
	at := read(&fit.Profile, g.knobs)
	off, err := g.off(at)
	if err != nil {
		return err
	}
	fit.misfit = g.misfit(off)
	slopes, err := g.centralSlopes(at, wideNudge, nil)
	if err != nil {
		return err
	}
	wide := g.covariance(at, off, slopes, fit.misfit)
	known := func(k int) bool { return wide[k][k] < narrowBelow*narrowBelow }
	narrow, err := g.centralSlopes(at, nudge, known)
	if err != nil {
		return err
	}
	for k := range slopes {
		if known(k) {
			slopes[k] = narrow[k]
		}
	}
	fit.covariance = g.covariance(at, off, slopes, fit.misfit)
	for i, k := range g.knobs {
		e, held := math.Sqrt(fit.covariance[i][i]), slices.Contains(heldStill, k.name)
		fit.Knobs = append(fit.Knobs, Turned{
			Name: k.name, Unit: k.unit(), Value: math.Exp(at[i]), Start: math.Exp(g.start[i]), Error: e, Told: !held && e < g.before(i)/2, Held: held,
		})
	}
	fit.tellErrors()
	return nil
}

const (
	// wideNudge is how far a number is turned to see what it does if its error is large: a
	// small turn does less than a request more or less in a step, and would look as if the
	// runs identified it.
	wideNudge = 0.3
	// narrowBelow is a standard error so small that a wide turn leads to another regime.
	narrowBelow = nudge
)

// centralSlopes are how residuals change with each knob, over a turn both ways; of
// those that are wanted, or all if wanted is nil.
func (f *fitter) centralSlopes(at []float64, turn float64, wanted func(k int) bool) ([][]float64, error) {
	var settings [][]float64
	var of []int
	for k := range at {
		if wanted != nil && !wanted(k) {
			continue
		}
		of = append(of, k)
		for _, by := range []float64{turn, -turn} {
			to := slices.Clone(at)
			to[k] += by
			settings = append(settings, to)
		}
	}
	ends, err := f.offs(settings)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(at))
	for i, k := range of {
		out[k] = ends[2*i]
		for r := range out[k] {
			out[k][r] = (out[k][r] - ends[2*i+1][r]) / (2 * turn)
		}
	}
	return out, nil
}
