package pace

import (
	"iter"
	"math"
	"time"

	"tacho"
)

var constant = Kind{
	Name: "constant", Doc: "open loop, equal gaps",
	Fits: func(o Options) bool { return math.IsInf(o.Shape, 1) },
	New:  func(o Options) tacho.Pacer { return Constant{o.Rate, o.Count} },
}

// Constant is an open loop with equal gaps, the first of them before the first
// arrival. The n-th arrival is computed from n, not from the one before, so
// rounding does not accumulate.
type Constant struct {
	Rate  float64
	Count int
}

// Arrivals implements tacho.Pacer.
func (c Constant) Arrivals() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for n := 1; (c.Count == 0 || n <= c.Count) && yield(seconds(float64(n)/c.Rate)); n++ {
		}
	}
}
