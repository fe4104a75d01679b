package search

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tacho/stat"
)

// A lens shows how crowded it is at each arrival of a schedule: how long a model lets
// the request wait, or how long it takes then. What makes a request slow depends on the
// server, so the model is the one by which those are slow that were slow in the probes.
// Arrivals and lengths are ours, so that it is known how lucky a probe was.
type lens struct {
	model
	of    part
	tells float64 // how much of what makes requests slow it tells: 1 is all
}

// A part of the time that a request takes.
type part int

const (
	waiting part = iota // until it begins
	going               // from then on, for an answer of usual length
	whole
)

var parts = [...]part{waiting, going, whole}

// seconds is how crowded it is at each arrival.
func (l lens) seconds(schedule []arrival) []float64 {
	wait, rest := l.serve(schedule)
	l.choose(schedule, wait, rest)
	return wait
}

// choose puts the part that counts in the place of the waits.
func (l lens) choose(schedule []arrival, wait, rest []float64) {
	for i := range wait {
		switch l.of {
		case going:
			wait[i] = rest[i] / schedule[i].output
		case whole:
			wait[i] += rest[i]
		case waiting:
		}
	}
}

// crowd is that as a logarithm.
func (l lens) crowd(schedule []arrival) []float64 {
	out := l.seconds(schedule)
	for i := range out {
		out[i] = l.log(out[i])
	}
	return out
}

func (l lens) log(seconds float64) float64 { return math.Log(seconds + l.alone/1e4) }

// A lesson is what a probe shows of a goal: when requests came, and how slow those were
// of which that is known.
type lesson struct {
	schedule []arrival
	places   []int // of those, in the schedule
	slow     []float64
}

// lessons are those of the probes that are not far from a load.
func (s *Search) lessons(goal int, load float64) (out []lesson) {
	const far = 1.3
	for i := range s.Results {
		r := &s.Results[i]
		if !r.tells() || !r.Open() || r.Load > far*load || load > far*r.Load {
			continue
		}
		l := lesson{schedule: r.schedule}
		for k, w := range r.window {
			if m := w.marks[goal]; m.n > 0 && !math.IsInf(m.room, 0) {
				l.places, l.slow = append(l.places, r.begin+k), append(l.slow, -m.room)
			}
		}
		if len(l.slow) >= scoutSize {
			out = append(out, l)
		}
	}
	return out
}

// taught is a lens with a model that tells how slow requests were, by one of the parts.
// It tells as much as it explains of the variance within the probes.
func taught(m model, lessons []lesson) (best lens) {
	var xx, xy, yy [len(parts)]float64
	for _, o := range lessons {
		wait, rest := m.serve(o.schedule)
		for i, of := range parts {
			l := lens{model: m, of: of}
			crowd := slices.Clone(wait)
			l.choose(o.schedule, crowd, rest)
			n, x, y := float64(len(o.slow)), 0.0, 0.0
			for k, at := range o.places {
				crowd[at] = l.log(crowd[at])
				x, y = x+crowd[at]/n, y+o.slow[k]/n
			}
			for k, at := range o.places {
				dx, dy := crowd[at]-x, o.slow[k]-y
				xx[i], xy[i], yy[i] = xx[i]+dx*dx, xy[i]+dx*dy, yy[i]+dy*dy
			}
		}
	}
	for i, of := range parts {
		if tells := xy[i] * xy[i] / xx[i] / yy[i]; xy[i] > 0 && tells > best.tells {
			best = lens{m, of, tells}
		}
	}
	return best
}

// learn finds the lens that tells most of what makes requests slow for a goal. It begins
// with servers that are about right, with any number of seats and with a few, and turns
// one figure after the other.
func (s *Search) learn(goal int, load float64) lens {
	const seated = 2
	lessons, alone := s.lessons(goal, load), s.unloaded().Seconds()
	if s.Goals[goal].Metric == nil || len(lessons) == 0 || alone == 0 {
		return lens{}
	}
	begin := func(seats int) (best lens) {
		for _, part := range []float64{0.1, 0.4, 0.7} {
			best = better(best, taught(about(load, alone, part, seats), lessons))
		}
		return best
	}
	var some []lens
	for _, times := range []float64{0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2} {
		some = append(some, begin(max(int(math.Ceil(times*load*s.takes(load).Seconds())), 1)))
	}
	slices.SortStableFunc(some, func(a, b lens) int { return cmp.Compare(b.tells, a.tells) })
	best := begin(unseated).turned(lessons)
	for _, l := range some[:seated] {
		best = better(best, l.turned(lessons))
	}
	return best
}

// better is the lens that tells more.
func better(a, b lens) lens {
	if b.tells > a.tells {
		return b
	}
	return a
}

// turned is a lens after the figures of its model were turned, as long as that told
// more.
func (l lens) turned(lessons []lesson) lens {
	const first, last, rounds, little = 0.5, 0.05, 15, 0.002
	if l.tells == 0 {
		return l // nothing to begin with
	}
	step := first
	for range rounds {
		before := l.tells
		for _, turn := range turns {
			for _, by := range []float64{step, -step / (1 + step)} {
				m := l.model
				turn(&m, by)
				if other := taught(m, lessons); other.tells > l.tells {
					l = other
					break
				}
			}
		}
		if l.tells-before < little {
			step /= 2
		}
		if step < last {
			break
		}
	}
	return l
}

// unloaded estimates how long a request takes on an idle server.
func (s *Search) unloaded() (least time.Duration) {
	for _, r := range s.Results {
		if r.Verdict != Void && (least == 0 || r.Takes < least) {
			least = r.Takes
		}
	}
	return least
}

// weigh learns from the probes what makes requests slow. Where a goal is a mean,
// requests count as much as there are such in the process: it was by chance more
// crowded in a probe, or less, than it is in the long run (post-stratification). Where
// it is a percentile, there is a curve.
func (s *Search) weigh() {
	s.curves = nil
	all := s.samples()
	best := s.cross(all)
	if s.process == nil || best.goal < 0 {
		return
	}
	s.furnish()
	s.lenses = make([]lens, len(s.Goals))
	for goal := range s.Goals {
		s.lenses[goal] = s.learn(goal, best.load)
		if s.Goals[goal].Mean {
			s.balance(goal, best.load)
		}
	}
	for range 2 { // what counts most depends on where it is
		s.curves = s.newCurves(all, best.load, s.stretch())
		best = s.cross(all)
	}
}

// balance makes requests count as much as there are such in the process.
func (s *Search) balance(goal int, load float64) {
	const mostBusy = 0.97 // up to which a queue has a usual length
	l := s.lenses[goal]
	for i := range s.Results {
		r := &s.Results[i]
		if r.counts == nil {
			r.counts = make([][]float64, len(s.Goals))
		}
		r.counts[goal] = nil
		if l.tells > 0 && r.tells() && l.busy(r.Load) < mostBusy && nearness(r.Load, load, rareReach) > faint {
			r.counts[goal] = weights(l.crowd(r.schedule)[r.begin:r.begin+len(r.window)], l.crowd(stretched(s.stretch(), 1/r.Load)))
		}
	}
}

// weights are how much requests count, so that it is as often crowded among them as
// in a long schedule. Where too few are to be told apart, less crowded ones count
// with them.
func weights(crowd, long []float64) []float64 {
	const fewest, most = 5, 3.0
	out := make([]float64, len(crowd))
	for i := range out {
		out[i] = 1
	}
	if len(crowd) < scoutSize {
		return out
	}
	usual, n := stat.New(long[len(long)/20:]), float64(len(crowd))
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
			out[k] = min(max((q-from)*n/float64(len(in)), 1/most), most)
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

// stretch is a part of the process that is long enough while the search goes on.
func (s *Search) stretch() []arrival {
	const enough = 50_000
	return s.process[:min(enough, len(s.process))]
}

// furnish gives the requests of the process lengths as were seen.
func (s *Search) furnish() {
	var seen []arrival
	for _, r := range s.Results {
		if r.tells() {
			seen = append(seen, r.schedule...)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range s.process {
		one := seen[rng.IntN(len(seen))]
		s.process[i].prompt, s.process[i].output = one.prompt, one.output
	}
}

// stretched is a schedule of which the times are so many times as long.
func stretched(schedule []arrival, times float64) []arrival {
	out := slices.Clone(schedule)
	for i := range out {
		out[i].at *= times
	}
	return out
}

// arrivals is a schedule of usual requests.
func arrivals(schedule iter.Seq[time.Duration]) (out []arrival) {
	for at := range schedule {
		out = append(out, arrival{at.Seconds(), 1, 1})
	}
	return out
}
