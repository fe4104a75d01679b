package pace

import (
	"iter"
	"math/rand/v2"
	"time"

	"tacho"
)

var poisson = Kind{
	Name: "poisson", Doc: "open loop, independent exponential gaps",
	Fits: func(o Options) bool { return o.Shape == 1 },
	New:  func(o Options) tacho.Pacer { return Poisson{o.Rate, o.Count, o.Seed, o.Within} },
}

// Poisson is an open loop with independent exponential gaps.
type Poisson struct {
	Rate  float64
	Count int
	Seed  uint64
	// Within is as in Options.
	Within float64
}

// Arrivals implements tacho.Pacer.
func (p Poisson) Arrivals() iter.Seq[time.Duration] {
	return normalized(p.Rate, p.Count, p.Within, p.Seed, (*rand.Rand).ExpFloat64)
}

// normalized is the schedule whose gaps are drawn by gap, which has mean 1. A
// schedule of known length is stretched so that its last arrival is at
// count/rate exactly: a run of N requests at rate R takes N/R whatever was
// drawn, and runs with different seeds offer the same load. (The stretched
// gaps are those of a Poisson process given its last arrival.) A schedule within
// a time has one gap more, from its last arrival to the end of that time: it is a
// Poisson process given how many arrive in the time, which are as many uniform
// numbers, sorted. The draws are made twice rather than kept: a million arrivals
// take no memory.
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

// newRand gives arrivals a stream of their own: workloads draw from the same
// seed, and prompt lengths must not be correlated with gaps.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x61727269766c73)) }
