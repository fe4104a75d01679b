package pace

import (
	"iter"
	"math"
	"time"

	"github.com/tacho-bench/tacho"
)

var burst = Kind{
	Name: "burst",
	Fits: func(o Options) bool { return math.IsInf(o.Rate, 1) },
	New:  func(o Options) tacho.Pacer { return Burst{o.Count} },
}

var closed = Kind{
	Name: "closed",
	Fits: func(o Options) bool { return math.IsInf(o.Rate, 1) && o.Limited },
	New:  func(o Options) tacho.Pacer { return Closed{o.Count} },
}

// Burst makes all arrivals due at the start.
type Burst struct{ Count int }

// Arrivals implements tacho.Pacer.
func (b Burst) Arrivals() iter.Seq[time.Duration] { return repeat(0, b.Count) }

// Closed is the closed loop: each arrival is due when a slot is free.
type Closed struct{ Count int }

// Arrivals implements tacho.Pacer.
func (c Closed) Arrivals() iter.Seq[time.Duration] { return repeat(tacho.ASAP, c.Count) }

func repeat(at time.Duration, count int) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := 0; (count == 0 || i < count) && yield(at); i++ {
		}
	}
}
