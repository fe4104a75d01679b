package predict

import (
	"math"
	"math/rand/v2"

	"tacho/sim/step"
)

// mostDoubt bounds how far a number is drawn from where it was fitted: what is
// known worse than this is not known, and would make an engine of no kind.
const mostDoubt = 0.5

// Draw is p with the numbers that were fitted drawn from their standard errors,
// each for itself, on a scale of logarithms.
func Draw(p step.Profile, rng *rand.Rand) step.Profile {
	all := knobs(p)
	at := read(&p, all)
	for i, k := range all {
		if e := min(p.Errors[k.name], mostDoubt); e > 0 {
			at[i] += math.Sqrt(math.Log(1+e*e)) * rng.NormFloat64()
		}
	}
	return turned(p, all, at)
}
