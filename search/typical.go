package search

import (
	"iter"
	"math"
	"slices"
	"time"

	"tacho/stat"
)

// draws are how many schedules are looked at for a typical one.
const draws = 40

// Typical is which of many draws of an arrival process is most like the process
// itself. Requests that come in a rush are the slow ones, and a short probe may
// by chance see many rushes or none: what it then shows is its luck. So we choose
// a schedule that has as many rushes, of a few lengths around the time that a
// request takes, as all the draws have together. It is a part of the same
// process, and not a smoother one.
func Typical(draw func(k uint64) iter.Seq[time.Duration], takes time.Duration) uint64 {
	if takes <= 0 {
		return 0
	}
	var rushes [draws][len(lengths)][]float64
	var all [len(lengths)][]float64
	for k := range rushes {
		schedule := slices.Collect(draw(uint64(k)))
		for i, length := range lengths {
			rushes[k][i] = rush(schedule, length*takes.Seconds())
			all[i] = append(all[i], rushes[k][i]...)
		}
	}
	want := shape(&all)
	best, least := uint64(0), math.Inf(1)
	for k := range rushes {
		off := 0.0
		for i, w := range shape(&rushes[k]) {
			d := math.Log(w / want[i])
			off += d * d
		}
		if off < least {
			best, least = uint64(k), off
		}
	}
	return best
}

// lengths are those of the rushes that are looked at, in times that a request
// takes.
var lengths = [...]float64{0.5, 2, 6}

// rush is how many requests came lately at each arrival of a schedule: those
// that are a length ago count a third.
func rush(schedule []time.Duration, length float64) []float64 {
	out := make([]float64, len(schedule))
	for i := 1; i < len(schedule); i++ {
		out[i] = (out[i-1] + 1) * math.Exp(-(schedule[i]-schedule[i-1]).Seconds()/length)
	}
	return out[len(out)/20:] // at the beginning there was no lately
}

// shape are some percentiles of rushes.
func shape(rushes *[len(lengths)][]float64) (out []float64) {
	for _, r := range rushes {
		sorted := stat.New(slices.Clone(r))
		for _, q := range []float64{0.5, 0.9, 0.97, 0.99} {
			out = append(out, max(sorted.Quantile(q), 1e-9))
		}
	}
	return out
}
