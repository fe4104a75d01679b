package search

import (
	"math"
	"sort"
)

// The fit estimates the limit from all requests of all probes. Goals with a miss curve
// use it (misscurve.go). For other goals, and for all goals before there is a curve,
// latency is taken to grow as a power of the load. Each request then shows the load at
// which it would just have kept its goal, and the limit is a quantile of these loads.
// Requests sent near the limit have a higher weight, because the power varies with the
// load. No verdict bounds the fit, so later probes correct a wrong one.

// A breakpoint is the load above which the SLO is missed, and the goal that is missed
// first; goal is -1 if none is.
type breakpoint struct {
	load float64
	goal int
}

// A sample is a result, prepared for the fit.
type sample struct {
	Result
	goals []column
}

// A column is the requests of a sample with a value for one goal.
type column struct {
	n, misses, mean float64   // weighted requests, misses and sum of means
	order           []int     // indices of the requests by rising headroom
	cumulative      []float64 // total weight of the first k requests of order
}

// samples returns the usable results, prepared for the fit.
func (s *Search) samples() (all []sample) {
	for _, r := range s.Results {
		if r.usable() {
			all = append(all, newSample(r, len(s.Goals)))
		}
	}
	return all
}

func newSample(r Result, goals int) sample {
	out := sample{Result: r, goals: make([]column, goals)}
	for i := range out.goals {
		c := &out.goals[i]
		for k := range r.window {
			if r.window[k].goals[i].n > 0 {
				c.order = append(c.order, k)
			}
		}
		sort.Slice(c.order, func(a, b int) bool {
			return r.window[c.order[a]].goals[i].logHeadroom < r.window[c.order[b]].goals[i].logHeadroom
		})
		c.accumulate(&r, i)
	}
	return out
}

// accumulate sums the values of goal i over the requests of the column.
func (c *column) accumulate(r *Result, i int) {
	c.cumulative = make([]float64, len(c.order)+1)
	for j, k := range c.order {
		values, weight := &r.window[k].goals[i], 1.0
		if r.weights != nil && r.weights[i] != nil {
			weight = r.weights[i][k]
		}
		c.n += weight
		c.misses += weight * values.misses / values.n
		c.mean += weight * values.sum / values.n
		c.cumulative[j+1] = c.n
	}
}

// missesAt returns how many requests would miss goal i at a load, if latency grows with a
// power of the load.
func (p *sample) missesAt(i int, logLoad, power float64) float64 {
	c := &p.goals[i]
	growth := power * (logLoad - math.Log(p.Load))
	return c.cumulative[sort.Search(len(c.order), func(j int) bool { return p.window[c.order[j]].goals[i].logHeadroom > growth })]
}

// fit returns the load at which the first goal breaks. It iterates, because the weights of
// the requests depend on that load.
func (s *Search) fit(all []sample) breakpoint {
	low, high := s.fitRange()
	first := s.firstCurveBreak(low, high)
	at := min(first.load, math.Sqrt(low*high))
	best := first
	for range fitRounds {
		best = first
		for i := range s.Goals {
			if s.curve(i) != nil {
				continue
			}
			if x := s.powerBreak(i, all, at, [2]float64{low, high}); x < best.load {
				best = breakpoint{x, i}
			}
		}
		best.load = min(max(best.load, low), high)
		if math.Abs(best.load/at-1) < fitTolerance {
			break
		}
		at = math.Sqrt(at * best.load)
	}
	return best
}

// fitRange returns the range of loads in which the fit looks for the limit.
func (s *Search) fitRange() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, r := range s.Results {
		if !r.Alone {
			low, high = min(low, r.Load), max(high, r.Load)
		}
	}
	return low / fitBelow, max(high*fitAbove, minFitRange*low)
}

// powerBreak returns the load at which goal i breaks by the power law; infinity if it does
// not break within the bounds. Requests near at have the highest weight.
func (s *Search) powerBreak(i int, all []sample, at float64, bounds [2]float64) float64 {
	g, reach := s.Goals[i], fitReach
	if !g.Mean && g.Share < rareShare {
		reach = rareReach
	}
	power := s.power(i, all, at)
	sum, misses, mean := 0.0, 0.0, 0.0
	for k := range all {
		p := &all[k]
		c, weight := &p.goals[i], nearness(p.Load, at, reach)
		sum += weight * c.n
		misses += weight * c.misses * math.Pow(at/p.Load, sharePower)
		mean += weight * g.scale(c.mean, math.Pow(at/p.Load, power))
	}
	switch {
	case sum == 0:
		return math.Inf(1)
	case g.Mean:
		return at * math.Pow(g.headroom(mean/sum), 1/power)
	case g.reportsShare():
		return at * math.Pow(g.Share*sum/misses, 1/sharePower)
	}
	breaks := func(logLoad float64) bool {
		misses := 0.0
		for k := range all {
			misses += nearness(all[k].Load, at, reach) * all[k].missesAt(i, logLoad, power)
		}
		return misses > g.Share*sum
	}
	return bisect(bounds, breaks)
}

// bisect returns the load between bounds from which on breaks is true; infinity if it is
// false at the upper bound.
func bisect(bounds [2]float64, breaks func(logLoad float64) bool) float64 {
	low, high := math.Log(bounds[0]), math.Log(bounds[1])
	if !breaks(high) {
		return math.Inf(1)
	}
	for high-low > bisectTolerance {
		if middle := (low + high) / 2; breaks(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// nearness returns the Gaussian weight of a probe of a load for an estimate at another
// load. A small exponential term gives the nearest probe a weight if all are far.
func nearness(load, at, reach float64) float64 {
	distance := math.Log(load/at) / reach
	return math.Exp(-distance*distance/2) + farWeight*math.Exp(-math.Abs(distance))
}

// power returns the power of the load with which the value of a goal grows near a load:
// the slope of a weighted regression with a prior.
func (s *Search) power(i int, all []sample, at float64) float64 {
	var n, x, y, xx, xy float64
	for k := range all {
		p := &all[k]
		e := p.Goals[i]
		if len(p.window) < scoutRequests || !(e.Pressure > 0) || math.IsInf(e.Pressure, 0) {
			continue
		}
		distance := math.Log(p.Load / at)
		weight := float64(len(p.window)) * math.Exp(-distance*distance/(2*powerReach*powerReach))
		logPressure := math.Log(e.Pressure)
		n, x, y = n+weight, x+weight*distance, y+weight*logPressure
		xx, xy = xx+weight*distance*distance, xy+weight*distance*logPressure
	}
	if n > 0 {
		xx, xy = xx-x*x/n, xy-x*y/n
	}
	return min(max((xy+defaultPowerWeight*defaultPower)/(xx+defaultPowerWeight), minPower), maxPower)
}
