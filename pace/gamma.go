package pace

import (
	"iter"
	"math/rand/v2"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

var gamma = Kind{
	Name: "gamma",
	Fits: func(Options) bool { return true },
	New:  func(o Options) tacho.Pacer { return Gamma{o.Rate, o.Shape, o.Count, o.Seed, o.Within} },
}

// Gamma is an open loop with independent gamma gaps. The coefficient of
// variation of a gap is 1/sqrt(Shape).
type Gamma struct {
	Rate  float64
	Shape float64
	Count int
	Seed  uint64
	// Within is Options.Within.
	Within float64
}

// Arrivals implements tacho.Pacer.
func (g Gamma) Arrivals() iter.Seq[time.Duration] {
	return normalized(g.Rate, g.Count, g.Within, g.Seed, func(r *rand.Rand) float64 { return stat.Gamma(r, g.Shape) / g.Shape })
}
