package search

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/stat"
)

// ChooseDraw returns the number of the draw of a probe's arrivals whose distribution of
// predicted delay is closest to the arrival process. Requests of a burst are
// slow, and by random variation a short probe has many bursts or none. The chosen draw is
// not smoother than the process: bursts are as frequent. process contains ProcessSize arrivals.
// Models with a higher R² have a higher weight.
func (s *Search) ChooseDraw(p Probe, process iter.Seq[time.Duration], draw func(k uint64) iter.Seq[time.Duration]) uint64 {
	if p.Expected <= 0 {
		return 0
	}
	if s.process == nil {
		s.process = stretched(arrivals(process), p.Load)
	}
	long := stretched(s.simulated(), 1/p.Load)
	for i := range long {
		long[i].prompt, long[i].output = 1, 1 // lengths of the draws are unknown
	}
	schedules := make([][]arrival, drawCount)
	for k := range schedules {
		schedules[k] = arrivals(draw(uint64(k)))
	}
	distance := make([]float64, drawCount)
	for _, f := range s.queues {
		if f.r2 > 0 {
			f.addDistances(long, schedules, distance)
		}
	}
	return uint64(slices.Index(distance, slices.Min(distance)))
}

// addDistances adds to the distance of each schedule the squared differences of its
// distribution function of the predicted delay from the function of a long schedule. The
// differences at each quantile are normalized, so all quantiles count alike.
func (f queueFit) addDistances(long []arrival, schedules [][]arrival, distance []float64) {
	reference := stat.New(f.logDelays(long))
	var squares [len(drawQuantiles)][]float64
	for _, schedule := range schedules {
		delays := f.logDelays(schedule)
		slices.Sort(delays)
		for i, q := range drawQuantiles {
			at, _ := slices.BinarySearch(delays, math.Nextafter(reference.Quantile(q), math.Inf(1)))
			d := float64(at)/float64(len(delays)) - q
			squares[i] = append(squares[i], d*d)
		}
	}
	for i := range squares {
		norm := max(epsilon, sum(squares[i]))
		for k, d := range squares[i] {
			distance[k] += f.r2 * d / norm
		}
	}
}

func sum(xs []float64) (out float64) {
	for _, x := range xs {
		out += x
	}
	return out
}

// simulated returns the simulated part of the arrival process.
func (s *Search) simulated() []arrival {
	return s.process[:min(simulatedArrivals, len(s.process))]
}

// sampleLengths gives the requests of the process random lengths of requests of the
// probes. The seed is fixed, so a search can be repeated.
func (s *Search) sampleLengths() {
	var sent []arrival
	for _, r := range s.Results {
		if r.usable() {
			sent = append(sent, r.schedule...)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range s.process {
		a := sent[rng.IntN(len(sent))]
		s.process[i].prompt, s.process[i].output = a.prompt, a.output
	}
}

// stretched returns a schedule with all times multiplied by a factor.
func stretched(schedule []arrival, factor float64) []arrival {
	out := slices.Clone(schedule)
	for i := range out {
		out[i].at *= factor
	}
	return out
}

// arrivals returns a schedule of requests of mean lengths.
func arrivals(schedule iter.Seq[time.Duration]) (out []arrival) {
	for at := range schedule {
		out = append(out, arrival{at.Seconds(), 1, 1})
	}
	return out
}
