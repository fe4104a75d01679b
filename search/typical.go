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

// Typical is which of many draws of an arrival process is most like the process
// itself, of which a long stretch is given. Requests that come in a rush are the
// slow ones, and a short probe may by chance see many rushes or none: what it then
// shows is its luck. So we choose a schedule that has as many rushes, of a few
// lengths around the time that a request takes, as the process has, and lets as many
// requests queue where one is served after the other. It is a part of that process,
// and not a smoother one.
func Typical(process iter.Seq[time.Duration], draw func(k uint64) iter.Seq[time.Duration], takes time.Duration) uint64 {
	if takes <= 0 {
		return 0
	}
	want := shape(slices.Collect(process), takes)
	off := make([][]float64, draws)     // squared, of each draw and feature
	usual := make([]float64, len(want)) // that of a draw, times their number
	for k := range off {
		off[k] = shape(slices.Collect(draw(uint64(k))), takes)
		for i := range want {
			d := off[k][i] - want[i]
			off[k][i] = d * d
			usual[i] += d * d
		}
	}
	best, least := 0, math.Inf(1)
	for k := range off {
		sum := 0.0
		for i, d := range off[k] { // all features count alike, whatever their spread
			sum += d / max(usual[i], 1e-12)
		}
		if sum < least {
			best, least = k, sum
		}
	}
	return uint64(best)
}

// Stretch is how many times longer than a probe the stretch of the process is.
const Stretch = 50

// What is looked at: rushes of these lengths, in times that a request takes, and
// queues before servers that are busy for these parts of the time.
var (
	lengths = [...]float64{0.5, 1, 2}
	busy    = [...]float64{0.5, 0.7, 0.85}
)

// rush is how many requests came lately at each arrival of a schedule: those
// that are a length ago count a third.
func rush(schedule []time.Duration, length float64) []float64 {
	out := make([]float64, len(schedule))
	for i := 1; i < len(schedule); i++ {
		out[i] = (out[i-1] + 1) * math.Exp(-(schedule[i]-schedule[i-1]).Seconds()/length)
	}
	return out[len(out)/20:] // at the beginning there was no lately
}

// queue is how much work is before each arrival of a schedule at a server that
// takes one after the other, all for the same time (Lindley's recursion).
func queue(schedule []time.Duration, busy float64) []float64 {
	out := make([]float64, len(schedule))
	for i := 1; i < len(schedule); i++ {
		served := (schedule[i] - schedule[i-1]).Seconds() * float64(len(schedule)) / schedule[len(schedule)-1].Seconds() / busy
		out[i] = max(0, out[i-1]+1-served)
	}
	return out[len(out)/20:]
}

// shape are the features of a schedule: of its rushes what is usual and what is
// rare, of its queues what is rare and what is very rare.
func shape(schedule []time.Duration, takes time.Duration) (out []float64) {
	for _, length := range lengths {
		sorted := stat.New(rush(schedule, length*takes.Seconds()))
		for _, q := range []float64{0.5, 0.8, 0.95} {
			out = append(out, math.Log1p(sorted.Quantile(q)))
		}
	}
	for _, b := range busy {
		sorted := stat.New(queue(schedule, b))
		for _, q := range []float64{0.9, 0.99} {
			out = append(out, math.Log1p(sorted.Quantile(q)))
		}
	}
	return out
}
