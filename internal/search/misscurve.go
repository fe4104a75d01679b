package search

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// A missCurve estimates the share of requests that miss a goal at any load near the
// probes. The queueing model gives the distribution of the predicted delay at a load.
// The probes give the distribution of slowness at each predicted delay.
//
// Slowness is the logarithm of the ratio of a value to the limit. It is modeled as
// slope * logDelay + power * log(load/at) + residual, with residuals by stratum of delay.
type missCurve struct {
	queueFit
	at       float64 // load around which probes have the highest weight
	slope    float64
	power    float64
	edges    []float64 // of the strata: log delays
	maxDelay float64   // longest log delay in the probes
	strata   []stratum
	process  []arrival // at one request per second
	grid     map[int][]delayBin
}

// A stratum is the residuals of the requests between two predicted delays.
type stratum struct {
	residuals  []float64 // rising
	weightFrom []float64 // total weight of the residuals from an index on
}

// A point is a request of a probe.
type point struct{ weight, logDelay, slowness, logLoad float64 }

// A delayBin is a share of the requests and their predicted delay.
type delayBin struct{ logDelay, share float64 }

// newCurves returns the miss curves of the goals near a load; nil for a goal without one.
func (s *Search) newCurves(all []sample, at float64, process []arrival) []*missCurve {
	out := make([]*missCurve, len(s.Goals))
	for i, g := range s.Goals {
		if s.queues[i].r2 > 0 && !g.Mean && !g.reportsShare() {
			out[i] = newCurve(i, s.queues[i], all, at, process)
		}
	}
	return out
}

// newCurve returns the miss curve of a goal; nil if there are too few requests near at.
func newCurve(goal int, f queueFit, all []sample, at float64, process []arrival) *missCurve {
	var points []point
	sum := 0.0
	for i := range all {
		p := &all[i]
		weight := nearness(p.Load, at, curveReach)
		if weight < minWeight {
			continue
		}
		logDelays := f.logDelays(p.schedule)[p.begin:]
		for k := range p.window {
			if v := p.window[k].goals[goal]; v.n > 0 {
				sum += weight
				points = append(points, point{weight, logDelays[k], min(-v.logHeadroom, maxSlowness), math.Log(p.Load / at)})
			}
		}
	}
	if sum < minCurveWeight {
		return nil
	}
	c := &missCurve{queueFit: f, at: at, process: process, grid: map[int][]delayBin{}}
	c.regress(points)
	c.stratify(points)
	return c
}

// regress estimates slope and power by weighted least squares. The power has a prior: what
// the delay leaves unexplained of the default power.
func (c *missCurve) regress(points []point) {
	var n, x, y, l float64
	for _, p := range points {
		n, x, y, l = n+p.weight, x+p.weight*p.logDelay, y+p.weight*p.slowness, l+p.weight*p.logLoad
	}
	x, y, l = x/n, y/n, l/n
	var xx, xy, xl float64
	ll, ly := defaultPowerWeight, defaultPowerWeight*(1-c.r2)*defaultPower
	for _, p := range points {
		dx, dy, dl := p.logDelay-x, p.slowness-y, p.logLoad-l
		xx, xy, xl = xx+p.weight*dx*dx, xy+p.weight*dx*dy, xl+p.weight*dx*dl
		ll, ly = ll+p.weight*dl*dl, ly+p.weight*dl*dy
	}
	c.slope = (xy*ll - ly*xl) / max(xx*ll-xl*xl, epsilon)
	c.power = (ly - c.slope*xl) / ll
}

// stratify divides the points by predicted delay. Strata have at least scoutRequests.
func (c *missCurve) stratify(points []point) {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.logDelay, b.logDelay) })
	c.maxDelay = points[len(points)-1].logDelay
	from := 0
	for _, q := range strataQuantiles {
		to := int(q * float64(len(points)))
		if q < 1 && min(to-from, len(points)-to) < scoutRequests {
			continue
		}
		if to < len(points) {
			c.edges = append(c.edges, points[to].logDelay)
		}
		c.strata, from = append(c.strata, c.newStratum(points[from:to])), to
	}
}

func (c *missCurve) newStratum(points []point) stratum {
	residual := func(p point) float64 { return p.slowness - c.slope*p.logDelay - c.power*p.logLoad }
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(residual(a), residual(b)) })
	out := stratum{weightFrom: make([]float64, len(points)+1)}
	for _, p := range points {
		out.residuals = append(out.residuals, residual(p))
	}
	for i := range slices.Backward(points) {
		out.weightFrom[i] = out.weightFrom[i+1] + points[i].weight
	}
	return out
}

// missShare returns the miss ratio at a load. Delays longer
// than all delays in the probes count as the longest one, because their slowness is
// unknown.
func (c *missCurve) missShare(load float64) (share float64) {
	byLoad := c.power * math.Log(load/c.at)
	for _, bin := range c.delayBins(load) {
		logDelay := min(bin.logDelay, c.maxDelay)
		s := &c.strata[sort.SearchFloat64s(c.edges, logDelay)]
		first := sort.SearchFloat64s(s.residuals, -c.slope*logDelay-byLoad)
		share += bin.share * s.weightFrom[first] / max(s.weightFrom[0], epsilon)
	}
	return share
}

// breakLoad returns the load above which more requests miss the goal than share; infinity
// if there is none within bounds.
func (c *missCurve) breakLoad(share float64, bounds [2]float64) float64 {
	breaks := func(logLoad float64) bool { return c.missShare(math.Exp(logLoad)) > share }
	for _, factor := range crossingFactors {
		low, high := max(bounds[0], c.at/factor), min(bounds[1], c.at*factor)
		switch {
		case low >= high:
		case breaks(math.Log(high)):
			if !breaks(math.Log(low)) {
				return bisect([2]float64{low, high}, breaks)
			}
		case high == bounds[1]:
			return math.Inf(1)
		}
	}
	return bisect(bounds, breaks)
}

// curve returns the miss curve of a goal; nil if there is none.
func (s *Search) curve(goal int) *missCurve {
	if s.curves == nil {
		return nil
	}
	return s.curves[goal]
}

// firstCurveBreak returns the lowest break of all miss curves.
func (s *Search) firstCurveBreak(low, high float64) breakpoint {
	best := breakpoint{math.Inf(1), -1}
	for i, c := range s.curves {
		if c == nil {
			continue
		}
		if x := c.breakLoad(s.Goals[i].Share, [2]float64{low, min(high, best.load)}); x < best.load {
			best = breakpoint{x, i}
		}
	}
	return best
}

// delayBins returns the stationary distribution of the predicted delay at a load, by
// interpolation between two loads of a grid.
func (c *missCurve) delayBins(load float64) []delayBin {
	at := math.Log(load) / gridStep
	below := math.Floor(at)
	low, high := c.simulatedBins(int(below)), c.simulatedBins(int(below)+1)
	out := make([]delayBin, len(low))
	for i := range out {
		out[i] = delayBin{low[i].logDelay + (at-below)*(high[i].logDelay-low[i].logDelay), low[i].share}
	}
	return out
}

// simulatedBins returns the distribution at a load of the grid.
func (c *missCurve) simulatedBins(step int) (out []delayBin) {
	if out = c.grid[step]; out != nil {
		return out
	}
	delays := c.delays(stretched(c.process, math.Exp(-gridStep*float64(step))))
	delays = delays[len(delays)/simulatedWarmupDivisor:]
	sorted := make([]uint32, len(delays)) // bits of floats, which sort as the floats do if none is negative
	for i, seconds := range delays {
		sorted[i] = math.Float32bits(float32(max(seconds, 0)))
	}
	slices.Sort(sorted)
	from := 0.0
	for _, zone := range delayZones {
		share := (zone.to - from) / float64(zone.bins)
		for i := range zone.bins {
			at := int((from + share*(float64(i)+0.5)) * float64(len(sorted)))
			out = append(out, delayBin{c.logDelay(float64(math.Float32frombits(sorted[at]))), share})
		}
		from = zone.to
	}
	c.grid[step] = out
	return out
}
