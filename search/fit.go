package search

import (
	"math"
	"sort"
)

// The fit. Percentiles have curves where a lens tells something; what follows is for
// all else, and for the time before that. Every request of a probe tells at which load it would just have kept
// its goal, if latency grows as a power of the load; the limit is the load below
// which as many of these lie as the goal lets miss it. So all requests that were
// ever sent near the limit count together, and what was seen farther away counts
// less, for the power changes. No verdict bounds the fit: a probe counts for what
// its requests are worth, and a wrong one is outweighed by those that follow.
const (
	fitReach    = 0.08 // how far away what was seen still counts, of the logarithm of the load
	rareReach   = 0.12 // and of what is rare, for there is less of it
	rare        = 0.02
	fitPower    = 3.0 // the power before probes show another
	usualWeight = 0.2 // how much that counts, in requests times squared distance
	leastPower  = 0.7
	mostPower   = 15.0
	sharePower  = 12.0 // the power of the share of requests that miss
)

// A limit is where the load breaks the SLO, and which goal breaks first; goal is
// -1 where none does.
type limit struct {
	load float64
	goal int
}

// samples are what the probes saw.
func (s *Search) samples() (all []sample) {
	for _, r := range s.Results {
		if r.tells() {
			all = append(all, newSample(r, len(s.Goals)))
		}
	}
	return all
}

// A sample is what a probe saw, or would have seen by chance.
type sample struct {
	Result
	drawn []float64 // how much each request counts
	goals []column
}

// A column is what the requests of a sample say of one goal.
type column struct {
	n, miss, mean float64   // requests, and of these: those that miss, and the sum of their means
	by            []int     // requests, in order of their room
	below         []float64 // how much the first of these count, as far as each
}

func newSample(r Result, goals int) sample {
	out := sample{Result: r, drawn: make([]float64, len(r.window)), goals: make([]column, goals)}
	for k := range out.drawn {
		out.drawn[k] = 1
	}
	for i := range out.goals {
		c := &out.goals[i]
		for k := range r.window {
			if r.window[k].marks[i].n > 0 {
				c.by = append(c.by, k)
			}
		}
		sort.Slice(c.by, func(a, b int) bool { return r.window[c.by[a]].marks[i].room < r.window[c.by[b]].marks[i].room })
		c.below = make([]float64, len(c.by)+1)
	}
	out.count()
	return out
}

// count sums up what was drawn.
func (p *sample) count() {
	for i := range p.goals {
		c := &p.goals[i]
		c.n, c.miss, c.mean = 0, 0, 0
		for j, k := range c.by {
			m, times := &p.window[k].marks[i], p.drawn[k]
			if p.counts != nil && p.counts[i] != nil {
				times *= p.counts[i][k]
			}
			c.n += times
			c.miss += times * m.miss / m.n
			c.mean += times * m.sum / m.n
			c.below[j+1] = c.n
		}
	}
}

// under is how many requests would miss goal i at a load, by its logarithm.
func (p *sample) under(i int, load, power float64) float64 {
	c := &p.goals[i]
	room := power * (load - math.Log(p.Load))
	return c.below[sort.Search(len(c.by), func(j int) bool { return p.window[c.by[j]].marks[i].room > room })]
}

// cross is the load at which the first goal breaks, by what is in the samples.
func (s *Search) cross(all []sample) limit {
	low, high := s.tried()
	first := s.firstCurve(all, low, high)
	at := min(first.load, math.Sqrt(low*high))
	best := first
	for range 8 { // what counts most depends on where it is
		best = first
		for i := range s.Goals {
			if s.curve(i) != nil {
				continue
			}
			if x := s.crossing(i, all, at, [2]float64{low, high}); x < best.load {
				best = limit{x, i}
			}
		}
		best.load = min(max(best.load, low), high)
		if math.Abs(best.load/at-1) < 0.002 {
			break
		}
		at = math.Sqrt(at * best.load)
	}
	return best
}

// crossing is the load at which goal i breaks; infinity where it is in no danger
// within the bounds. What was seen near at counts most.
func (s *Search) crossing(i int, all []sample, at float64, bounds [2]float64) float64 {
	g, reach := s.Goals[i], fitReach
	if !g.Mean && g.Share < rare {
		reach = rareReach
	}
	power := s.power(i, all, at)
	sum, missed, mean := 0.0, 0.0, 0.0
	for k := range all {
		p := &all[k]
		c, weight := &p.goals[i], nearness(p.Load, at, reach)
		sum += weight * c.n
		missed += weight * c.miss * math.Pow(at/p.Load, sharePower)
		mean += weight * g.grow(c.mean, math.Pow(at/p.Load, power))
	}
	switch {
	case sum == 0:
		return math.Inf(1)
	case g.Mean:
		return at * math.Pow(g.room(mean/sum), 1/power)
	case g.counted():
		return at * math.Pow(g.Share*sum/missed, 1/sharePower)
	}
	breaks := func(load float64) bool {
		under := 0.0
		for k := range all {
			under += nearness(all[k].Load, at, reach) * all[k].under(i, load, power)
		}
		return under > g.Share*sum
	}
	return bisect(bounds, breaks)
}

// bisect is the load, between bounds, from which on breaks is true; infinity
// where it never is.
func bisect(bounds [2]float64, breaks func(log float64) bool) float64 {
	low, high := math.Log(bounds[0]), math.Log(bounds[1])
	if !breaks(high) {
		return math.Inf(1)
	}
	for high-low > 1e-4 {
		if middle := (low + high) / 2; breaks(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// grow is what becomes of a value of the goal when latencies grow by a factor.
func (g Goal) grow(value, factor float64) float64 {
	if g.Floor {
		return value / factor
	}
	return value * factor
}

// room is by which factor latencies may grow until a value breaks the goal.
func (g Goal) room(value float64) float64 {
	if g.Floor {
		return value / g.Limit
	}
	return g.Limit / max(value, 1e-9)
}

// nearness is how much a load counts for one that it is near to. Where none is
// near, the nearest of them counts.
func nearness(load, at, reach float64) float64 {
	far := math.Log(load/at) / reach
	return math.Exp(-far*far/2) + 1e-6*math.Exp(-math.Abs(far))
}

// power is with which power of the load the value of a goal grows, near a load:
// the slope of a line through the probes, drawn towards the usual one.
func (s *Search) power(i int, all []sample, at float64) float64 {
	var n, x, y, xx, xy float64
	for k := range all {
		p := &all[k]
		e := p.Goals[i]
		if len(p.window) < scoutSize || !(e.Pressure > 0) || math.IsInf(e.Pressure, 0) {
			continue
		}
		far := math.Log(p.Load / at)
		weight := float64(len(p.window)) * math.Exp(-far*far/(8*rareReach*rareReach))
		pressure := math.Log(e.Pressure)
		n, x, y = n+weight, x+weight*far, y+weight*pressure
		xx, xy = xx+weight*far*far, xy+weight*far*pressure
	}
	if n > 0 {
		xx, xy = xx-x*x/n, xy-x*y/n
	}
	return min(max((xy+usualWeight*fitPower)/(xx+usualWeight), leastPower), mostPower)
}
