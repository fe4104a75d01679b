package predict

import (
	"math"
	"slices"
	"strings"
)

// before is the prior standard error of a parameter without data. Values read off
// the token times do not count, because they come from the same runs as the
// residuals. A start profile with errors comes from other runs, so its errors
// count.
func (f *fitter) before(k int) float64 {
	name := f.parameters[k].name
	if e, ok := f.base.Errors[name]; ok {
		return max(e, f.sigma(k))
	}
	if strings.HasPrefix(name, "front_end.") {
		return 2 * startSigma
	}
	return startSigma
}

// covariance is the covariance of the parameters' errors. The information in the
// residuals is scaled by their size, because sigma only defines relative weights.
// The distance to the minimum of the residuals is added, because values that were
// read off, or a search that ended early, may keep a parameter away from the
// minimum.
func (f *fitter) covariance(at, off []float64, slopes [][]float64, scale float64) [][]float64 {
	n := len(f.parameters)
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

// misfit is the reduced chi-square of the residuals, times the number of residuals
// per independent one: TTFT, its percentiles and the first byte of a level are
// correlated, and so are TPOT, ITL and throughput.
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
	return max(each*sum/float64(max(n-len(f.parameters), len(kinds))), leastMisfit)
}

// leastMisfit keeps the scale above zero if a simulated engine is explained
// exactly.
const leastMisfit = 1e-4

// kindOf returns the group of correlated metrics: waits for the first token, token
// times, gaps.
func kindOf(figure int) int {
	switch figure {
	case TTFT, ttft50, TTFT99, head, earliest:
		return 0
	case stall1, stall2, stall8:
		return 2
	}
	return 1
}

// standardErrors computes the standard errors of a fit. Fixed numbers count as
// uncertain, because other parameters compensate for their errors.
func (f *fitter) standardErrors(fit *Fit) error {
	start := withValues(f.base, f.parameters, f.start)
	g := &fitter{Options: f.Options, ctx: f.ctx, levels: f.levels, base: fit.Profile, parameters: uncertain(fit.Profile), sharp: f.sharp}
	g.start = read(&start, g.parameters)
	g.base.Errors = f.base.Errors
	at := read(&fit.Profile, g.parameters)
	off, err := g.residuals(at)
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
	for i, k := range g.parameters {
		e, held := math.Sqrt(fit.covariance[i][i]), slices.Contains(heldFixed, k.name)
		fit.Parameters = append(fit.Parameters, Parameter{
			Name: k.name, Unit: k.unit(), Value: math.Exp(at[i]), Error: e, Identified: !held && e < g.before(i)/2, Held: held,
		})
	}
	fit.writeErrors()
	return nil
}

const (
	// wideNudge is the step of the numerical derivative for a number with a large
	// error. A small step has less effect than one request more or less in a step
	// of the engine, and would look as if the runs identified the number.
	wideNudge = 0.3
	// narrowBelow is a standard error so small that a wide nudge leads to another
	// regime.
	narrowBelow = nudge
)

// centralSlopes are the central differences of the residuals with respect to each
// parameter, or only to the wanted ones if wanted is not nil.
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
	ends, err := f.residualsOf(settings)
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
