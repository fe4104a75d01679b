package pace

import (
	"iter"
	"math/rand/v2"
	"time"

	"github.com/tacho-bench/tacho"
)

var poisson = Kind{
	Name: "poisson",
	Fits: func(o Options) bool { return o.Shape == 1 },
	New:  func(o Options) tacho.Pacer { return Poisson{o.Rate, o.Count, o.Seed, o.Within} },
}

// Poisson is an open loop with independent exponential gaps.
type Poisson struct {
	Rate  float64
	Count int
	Seed  uint64
	// Within is Options.Within.
	Within float64
}

// Arrivals implements tacho.Pacer.
func (p Poisson) Arrivals() iter.Seq[time.Duration] {
	return normalized(p.Rate, p.Count, p.Within, p.Seed, (*rand.Rand).ExpFloat64)
}

// normalized returns a schedule with gaps drawn by gap, a distribution with mean 1.
//
// If count is known, the schedule is stretched so that the last arrival is at exactly count/rate: a run of N
// requests at rate R takes N/R for every seed, and runs with different seeds offer the same load. (The stretched
// gaps are the gaps of a Poisson process conditioned on its last arrival.) With within, the schedule includes one
// more gap, from the last arrival to the end of the period. The result is a Poisson process conditioned on its
// count: count sorted uniform numbers.
//
// normalized draws every gap twice instead of storing the gaps, so a million arrivals take no memory.
func normalized(rate float64, count int, within float64, seed uint64, gap func(*rand.Rand) float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		scale := 1 / rate
		if count > 0 {
			gaps, all := count, float64(count)/rate
			if within > 0 {
				gaps, all = count+1, within
			}
			sum, rng := 0.0, newRand(seed)
			for range gaps {
				sum += gap(rng)
			}
			if sum > 0 {
				scale = all / sum
			}
		}
		sum, rng := 0.0, newRand(seed)
		for n := 0; count == 0 || n < count; n++ {
			sum += gap(rng)
			if !yield(seconds(sum * scale)) {
				return
			}
		}
	}
}

// newRand returns a random stream for arrivals only. Workloads draw from the same seed, and prompt lengths must not
// correlate with gaps.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x61727269766c73)) }
