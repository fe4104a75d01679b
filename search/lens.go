package search

import (
	"math"
	"slices"
	"time"

	"tacho/stat"
)

// A lens shows how crowded it is at each arrival of a schedule. What makes a request
// slow depends on the server: one that serves requests one after the other has them
// queue, and one that serves them together shares its time among those that came
// lately.
type lens struct {
	seconds float64 // that a request takes alone, or for how long one counts
	queue   bool
}

// lensesAt are what is looked through at a load: how many came lately, in times that
// a request takes, and queues before servers that are busy for a part of the time.
func lensesAt(load float64, takes time.Duration) (out []lens) {
	for _, times := range []float64{0.25, 0.5, 1, 2} {
		out = append(out, lens{times * takes.Seconds(), false})
	}
	for _, busy := range []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95} {
		out = append(out, lens{busy / load, true})
	}
	return out
}

// crowd is how crowded it is at each arrival: how much work there is before it
// (Lindley's recursion), or how many came lately, of which those that are a length
// ago count a third. At the beginning nobody knows.
func (l lens) crowd(schedule []time.Duration) []float64 {
	out := make([]float64, len(schedule))
	for i := 1; i < len(schedule); i++ {
		gap := (schedule[i] - schedule[i-1]).Seconds() / l.seconds
		if l.queue {
			out[i] = max(0, out[i-1]+1-gap)
		} else {
			out[i] = (out[i-1] + 1) * math.Exp(-gap)
		}
	}
	return out[len(out)/20:]
}

// telling is how much each lens counts for a goal: by how well it tells which
// requests of the probes were slow. Those that tell far less than the best do not
// count.
func (s *Search) telling(lenses []lens, goal int) []float64 {
	const sharply, least = 2, 0.05
	out := make([]float64, len(lenses))
	if goal < 0 || s.Goals[goal].Metric == nil {
		return even(out)
	}
	for i, l := range lenses {
		var xx, xy, yy float64
		for _, r := range s.Results {
			schedule, slow := r.slow(goal)
			if !r.tells() || len(slow) < scoutSize {
				continue
			}
			x := l.crowd(schedule)
			y := slow[len(slow)-len(x):]
			mx, my := total(x)/float64(len(x)), total(y)/float64(len(y))
			for k := range x {
				xx += (x[k] - mx) * (x[k] - mx)
				xy += (x[k] - mx) * (y[k] - my)
				yy += (y[k] - my) * (y[k] - my)
			}
		}
		if xy > 0 {
			out[i] = xy * xy / xx / yy
		}
	}
	best := slices.Max(out)
	if best == 0 {
		return even(out)
	}
	for i := range out {
		if out[i] = math.Pow(out[i]/best, sharply); out[i] < least {
			out[i] = 0
		}
	}
	return out
}

func even(weights []float64) []float64 {
	for i := range weights {
		weights[i] = 1
	}
	return weights
}

// slow are when the requests of a probe came, and how slow they were.
func (r *Result) slow(goal int) (schedule []time.Duration, slow []float64) {
	for _, w := range r.window {
		if m := w.marks[goal]; m.n > 0 && !math.IsInf(m.room, 0) {
			schedule, slow = append(schedule, w.due), append(slow, -m.room)
		}
	}
	return schedule, slow
}

// stretched is a schedule as it would be at one request a second.
func stretched(schedule []time.Duration, load float64) []time.Duration {
	out := make([]time.Duration, len(schedule))
	for i, at := range schedule {
		out[i] = time.Duration(float64(at) * load)
	}
	return out
}

// weigh makes the requests of the probes count as much as there are such in the
// process: it was by chance more crowded in a probe, or less, than it is in the long
// run (post-stratification).
func (s *Search) weigh() {
	best := s.cross(s.samples(), 1)
	if s.process == nil || best.goal < 0 {
		return
	}
	takes := s.takes(best.load)
	for goal := range s.Goals {
		lenses := lensesAt(best.load, takes)
		telling := s.telling(lenses, goal)
		l := lenses[slices.Index(telling, slices.Max(telling))]
		for i := range s.Results {
			r := &s.Results[i]
			if r.counts == nil {
				r.counts = make([][]float64, len(s.Goals))
			}
			r.counts[goal] = nil
			if r.tells() && !(l.queue && l.seconds*r.Load > mostBusy) && s.Goals[goal].Metric != nil {
				r.counts[goal] = l.weights(r.window, stretched(s.process, 1/r.Load))
			}
		}
	}
}

// mostBusy is up to which load a queue has a usual length.
const mostBusy = 0.97

// weights are how much requests count, so that it is as often crowded among them as
// in a long schedule. Where too few are to be told apart, less crowded ones count
// with them.
func (l lens) weights(window []seen, long []time.Duration) []float64 {
	const fewest, most = 5, 3.0
	schedule := make([]time.Duration, len(window))
	for i := range window {
		schedule[i] = window[i].due
	}
	out, crowd := even(make([]float64, len(window))), l.crowd(schedule)
	if len(crowd) < scoutSize {
		return out
	}
	usual, n := stat.New(l.crowd(long)), float64(len(crowd))
	known := out[len(out)-len(crowd):]
	from, low := 0.0, math.Inf(-1)
	for _, q := range []float64{0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1} {
		high := math.Inf(1)
		if (1-q)*n >= fewest {
			high = usual.Quantile(q)
		} else {
			q = 1
		}
		in := within(crowd, low, high)
		if q < 1 && (float64(len(in)) < fewest || (q-from)*n < fewest) {
			continue
		}
		for _, k := range in {
			known[k] = min(max((q-from)*n/float64(len(in)), 1/most), most)
		}
		if from, low = q, high; q == 1 {
			break
		}
	}
	return out
}

// within are the places of what is above one number, and not above another.
func within(xs []float64, low, high float64) (places []int) {
	for i, x := range xs {
		if x > low && x <= high {
			places = append(places, i)
		}
	}
	return places
}
