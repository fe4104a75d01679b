package pace

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

var linear = Kind{
	Name: "linear",
	Fits: func(o Options) bool { return o.Ramp == "linear" },
	New: func(o Options) tacho.Pacer {
		return Ramp{o, func(x float64) float64 { return o.RampStart + (o.RampEnd-o.RampStart)*x }}
	},
}

var exponential = Kind{
	Name: "exponential",
	Fits: func(o Options) bool { return o.Ramp == "exponential" },
	New: func(o Options) tacho.Pacer {
		return Ramp{o, func(x float64) float64 { return o.RampStart * math.Pow(o.RampEnd/o.RampStart, x) }}
	},
}

// Ramp is an open loop with a rising rate: from Rate(0) before the first arrival to Rate(1) before the last. A ramp
// is not stretched because its total duration is not specified.
type Ramp struct {
	Options
	RateAt func(share float64) float64
}

// Arrivals implements tacho.Pacer.
func (p Ramp) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		at, rng := 0.0, newRand(p.Seed)
		for i := range p.Count {
			at += p.gap(rng) / p.RateBefore(i)
			if !yield(seconds(at)) {
				return
			}
		}
	}
}

func (p Ramp) gap(r *rand.Rand) float64 {
	if math.IsInf(p.Shape, 1) {
		return 1
	}
	return stat.Gamma(r, p.Shape) / p.Shape
}

// RateBefore returns the rate before arrival i. A ramp from 0 has rate 0 before its first arrival and uses the rate
// of the second instead.
func (p Ramp) RateBefore(i int) float64 {
	last := float64(max(p.Count-1, 1))
	if r := p.RateAt(float64(i) / last); r > 0 {
		return r
	}
	if r := p.RateAt(1 / last); r > 0 && p.Count > 1 {
		return r
	}
	return p.RampEnd
}
