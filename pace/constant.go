package pace

import (
	"iter"
	"math"
	"time"

	"github.com/tacho-bench/tacho"
)

var constant = Kind{
	Name: "constant",
	Fits: func(o Options) bool { return math.IsInf(o.Shape, 1) },
	New:  func(o Options) tacho.Pacer { return Constant{o.Rate, o.Count, o.Within > 0} },
}

// Constant is an open loop with equal gaps. The first gap precedes the first arrival; with Inside, half a gap
// precedes the first arrival and half a gap follows the last. Arrival n is computed from n, not from arrival n-1,
// so rounding errors do not accumulate.
type Constant struct {
	Rate   float64
	Count  int
	Inside bool
}

// Arrivals implements tacho.Pacer.
func (c Constant) Arrivals() iter.Seq[time.Duration] {
	shift := 0.0
	if c.Inside {
		shift = 0.5
	}
	return func(yield func(time.Duration) bool) {
		for n := 1; (c.Count == 0 || n <= c.Count) && yield(seconds((float64(n)-shift)/c.Rate)); n++ {
		}
	}
}
