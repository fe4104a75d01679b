package pace

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"tacho"
)

var gamma = Kind{
	Name: "gamma", Doc: "open loop, gamma gaps: burstiness below 1 is burstier than Poisson, above 1 more even",
	Fits: func(Options) bool { return true },
	New:  func(o Options) tacho.Pacer { return Gamma{o.Rate, o.Shape, o.Count, o.Seed} },
}

// Gamma is an open loop with independent gamma gaps. The coefficient of
// variation of a gap is 1/sqrt(Shape).
type Gamma struct {
	Rate  float64
	Shape float64
	Count int
	Seed  uint64
}

// Arrivals implements tacho.Pacer.
func (g Gamma) Arrivals() iter.Seq[time.Duration] {
	return normalized(g.Rate, g.Count, g.Seed, func(r *rand.Rand) float64 { return gammaFloat64(r, g.Shape) / g.Shape })
}

// gammaFloat64 draws from the gamma distribution with the given shape and
// scale 1, by the method of Marsaglia and Tsang (2000). Shapes below 1 are
// boosted: a draw of shape+1 times u^(1/shape).
func gammaFloat64(r *rand.Rand, shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-r.Float64(), 1/shape) // 1-u: never 0
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if u := 1 - r.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}
