package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/tacho-bench/tacho/sim/step"
)

// maxSigma bounds the standard error for drawing a number. A number with a larger
// error is unknown, and drawing it would give an unrealistic engine.
const maxSigma = startSigma

// Draw returns p with its fitted numbers drawn from their standard errors and
// correlations, on a logarithmic scale.
func Draw(p step.Profile, rng *rand.Rand) step.Profile {
	all := uncertain(p)
	at := read(&p, all)
	l := factorOf(&p, all)
	z := make([]float64, len(all))
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	for i, k := range all {
		e := min(p.Errors[k.name], maxSigma)
		sum := 0.0
		for j := range i + 1 {
			sum += l[i][j] * z[j]
		}
		at[i] += e * sum
	}
	return withValues(p, all, at)
}

// factorOf returns the Cholesky factor of the parameters' correlations. A file
// contains them rounded and without the small ones, so the matrix may not be
// positive definite. If so, all correlations are reduced until it is.
func factorOf(p *step.Profile, all []parameter) [][]float64 {
	a := make([][]float64, len(all))
	for shrink := 1.0; ; shrink *= 0.95 {
		for i := range all {
			a[i] = make([]float64, len(all))
			a[i][i] = 1
			for j := range i {
				r := p.Correlations[pair(all[j].name, all[i].name)] * shrink
				a[i][j], a[j][i] = r, r
			}
		}
		l := factor(a)
		sound := true
		for i := range l {
			sound = sound && l[i][i] > leastOwn
		}
		if sound || shrink < 0.1 {
			return l
		}
	}
}

// leastOwn is the minimum fraction of an error that is independent of other
// numbers.
const leastOwn = 0.01

// pair is the name of a correlation.
func pair(a, b string) string { return a + ", " + b }

// leastCorrelation is the smallest correlation written to a file. Numbers with
// large errors are drawn together, and without the small correlations the draws
// diverge.
const leastCorrelation = 0.02

// writeErrors writes the standard errors and correlations of the parameters into
// the profile.
func (f *Fit) writeErrors() {
	f.Profile.Errors, f.Profile.Correlations = map[string]float64{}, map[string]float64{}
	for i := range f.Parameters {
		f.Profile.Errors[f.Parameters[i].Name] = digits("%.2g", f.Parameters[i].Error)
		for j := range i {
			if r := f.covariance[i][j] / math.Sqrt(f.covariance[i][i]*f.covariance[j][j]); math.Abs(r) >= leastCorrelation {
				f.Profile.Correlations[pair(f.Parameters[j].Name, f.Parameters[i].Name)] = digits("%.3f", r)
			}
		}
	}
}

// digits rounds x to the digits of the format.
func digits(form string, x float64) float64 {
	v, _ := strconv.ParseFloat(fmt.Sprintf(form, x), 64) // no error: it was formatted as a number
	return v
}
