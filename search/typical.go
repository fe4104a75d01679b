package search

import (
	"iter"
	"math"
	"slices"
	"time"

	"tacho/stat"
)

// draws are how many schedules are looked at for a typical one.
const draws = 100

// Long is how many arrivals of their process are looked at.
const Long = 400_000

// crowds are how crowded it is at some arrivals of a process: at those above these
// quantiles.
var crowds = [...]float64{0.5, 0.8, 0.95, 0.99}

// Typical is which of many draws of a probe's arrivals is most like their process,
// of which a long stretch is given. Requests that come in a rush are the slow ones,
// and a short probe may by chance see many rushes or none: what it then shows is its
// luck. So we choose a schedule in which it is as often crowded as in the process.
// It is a part of that process, and not a smoother one. The lenses that tell best how
// slow requests were count most.
func (s *Search) Typical(p Probe, process iter.Seq[time.Duration], draw func(k uint64) iter.Seq[time.Duration]) uint64 {
	if p.Expected <= 0 {
		return 0
	}
	if s.process == nil {
		s.process = stretched(arrivals(process), p.Load)
	}
	long := stretched(s.stretch(), 1/p.Load)
	for i := range long {
		long[i].prompt, long[i].output = 1, 1 // as the draws have it
	}
	schedules := make([][]arrival, draws)
	for k := range schedules {
		schedules[k] = arrivals(draw(uint64(k)))
	}
	off := make([]float64, draws)
	for _, l := range s.lenses {
		if l.tells > 0 {
			l.compare(long, schedules, l.tells, off)
		}
	}
	return uint64(slices.Index(off, slices.Min(off)))
}

// compare adds to each schedule by how much it is unlike a long one.
func (l lens) compare(long []arrival, schedules [][]arrival, weight float64, off []float64) {
	usual := stat.New(l.crowd(long))
	var squares [len(crowds)][]float64
	for _, schedule := range schedules {
		crowd := l.crowd(schedule)
		slices.Sort(crowd)
		for i, q := range crowds {
			at, _ := slices.BinarySearch(crowd, math.Nextafter(usual.Quantile(q), math.Inf(1)))
			d := float64(at)/float64(len(crowd)) - q
			squares[i] = append(squares[i], d*d)
		}
	}
	for i := range squares { // all count alike, whatever their spread
		sum := max(1e-12, total(squares[i]))
		for k, d := range squares[i] {
			off[k] += weight * d / sum
		}
	}
}

func total(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}
