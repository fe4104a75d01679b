package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"tacho/sim/step"
)

// mostDoubt bounds how far a number is drawn from where it was fitted: what is
// known worse than this is not known, and would make an engine of no kind.
const mostDoubt = startSigma

// Draw is p with the numbers that were fitted drawn from their standard errors and
// correlations, on a scale of logarithms.
func Draw(p step.Profile, rng *rand.Rand) step.Profile {
	all := uncertain(p)
	at := read(&p, all)
	l := factorOf(&p, all)
	z := make([]float64, len(all))
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	for i, k := range all {
		e := min(p.Errors[k.name], mostDoubt)
		sum := 0.0
		for j := range i + 1 {
			sum += l[i][j] * z[j]
		}
		at[i] += e * sum
	}
	return turned(p, all, at)
}

// factorOf is the lower triangle whose product with itself is the correlations of
// the knobs. A file has them rounded and without the small ones, so they may fit no
// distribution: then all are made smaller until they do.
func factorOf(p *step.Profile, all []knob) [][]float64 {
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

// leastOwn is the share of an error that no other number decides.
const leastOwn = 0.01

// pair is the name of a correlation.
func pair(a, b string) string { return a + ", " + b }

// leastCorrelation is the smallest one that a file has. Numbers with large errors are
// drawn together, and without the small correlations the draws go far apart.
const leastCorrelation = 0.02

// tellErrors writes into the profile how sure its knobs are, together.
func (f *Fit) tellErrors() {
	f.Profile.Errors, f.Profile.Correlations = map[string]float64{}, map[string]float64{}
	for i := range f.Knobs {
		f.Profile.Errors[f.Knobs[i].Name] = digits("%.2g", f.Knobs[i].Error)
		for j := range i {
			if r := f.covariance[i][j] / math.Sqrt(f.covariance[i][i]*f.covariance[j][j]); math.Abs(r) >= leastCorrelation {
				f.Profile.Correlations[pair(f.Knobs[j].Name, f.Knobs[i].Name)] = digits("%.3f", r)
			}
		}
	}
}

// digits is x with as many as the form has.
func digits(form string, x float64) float64 {
	v, _ := strconv.ParseFloat(fmt.Sprintf(form, x), 64) // it was a number
	return v
}
